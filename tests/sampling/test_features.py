"""Features on a device, in memory or in a file, row by row."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from tempergat.base import UserError
from tempergat.sampling import NeighborSampler, NodeFeatures

X = torch.randn(20, 5, generator=torch.Generator().manual_seed(0))
EDGES = torch.randint(0, 20, (2, 80), generator=torch.Generator().manual_seed(1))
NODES = torch.tensor([7, 0, 7, 19])


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
def test_rows_of_a_mapped_file_are_float32(tmp_path, dtype):
    np.save(tmp_path / "x.npy", X.numpy().astype(dtype))
    features = NodeFeatures.open(tmp_path / "x.npy")
    rows = features.rows(NODES)
    assert rows.dtype == torch.float32
    torch.testing.assert_close(rows, X[NODES], rtol=1e-2, atol=1e-3)
    assert features.shape == (20, 5)


def test_rows_of_sparse_features_are_dense():
    sparse = torch.where(X > 0.3, X, 0.0)
    features = NodeFeatures(sparse.to_sparse_csr())
    assert torch.equal(features.rows(NODES), sparse[NODES])


def test_a_transform_acts_on_the_rows_of_a_batch():
    doubled = NodeFeatures(X, transform=lambda rows: 2 * rows)
    assert torch.equal(doubled.to("cpu").near("cpu").rows(NODES), 2 * X[NODES])


def test_a_sampler_takes_the_rows_of_its_batches_from_the_file(tmp_path):
    np.save(tmp_path / "x.npy", X.numpy())
    data = Data(x=NodeFeatures.open(tmp_path / "x.npy"), edge_index=EDGES, num_nodes=20)
    for batch in NeighborSampler(data, [3, 2], 6):
        assert torch.equal(batch.x, X[batch.n_id])


def test_a_file_that_was_cut_short_is_refused_in_one_line(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, X.numpy())
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(UserError, match="bytes are fewer than its header says"):
        NodeFeatures.open(path)


def test_features_that_are_no_matrix_are_refused():
    with pytest.raises(UserError, match=r"shape \[20\]; give a matrix"):
        NodeFeatures(torch.ones(20))
    with pytest.raises(UserError, match="<U1"):
        NodeFeatures(np.array([["a"]]))
