"""Features on a device, in memory or in a file, row by row."""

import time
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from tempergat.base import UserError
from tempergat.sampling import NeighborSampler, NodeFeatures
from tempergat.sampling import features as storage
from tempergat.sampling.features import gather, open_array
from tests.sampling.graphs import write_sparse

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


def test_features_that_are_no_matrix_are_refused():
    with pytest.raises(UserError, match=r"shape \[20\]; give a matrix"):
        NodeFeatures(torch.ones(20))
    with pytest.raises(UserError, match="<U1"):
        NodeFeatures(np.array([["a"]]))


@pytest.mark.parametrize("large", [1, 1 << 22])
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool], ids=str
)
def test_rows_are_those_of_index_select(
    monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype, large: int
) -> None:
    monkeypatch.setattr(storage, "_LARGE", large)
    index = torch.tensor([4, 0, 4, 19])
    for shape in ((20,), (20, 3), (20, 0), (20, 3, 2)):
        x = (torch.randn(shape) * 9).to(dtype)
        assert torch.equal(gather(x, index), x.index_select(0, index))
        nothing = torch.empty(0, dtype=torch.long)
        assert gather(x, nothing).shape == (0, *shape[1:])
    x = torch.randn(3, 20).to(dtype)
    assert torch.equal(gather(x, index, 1), x.index_select(1, index))
    assert torch.equal(gather(x.t(), index), x.t().index_select(0, index))


def test_gradients_pass_through() -> None:
    x = torch.randn(2000, 1024, requires_grad=True)
    gather(x, torch.arange(1500)).sum().backward()
    assert x.grad is not None
    assert x.grad.sum() == 1500 * 1024


def test_features_larger_than_memory_open_in_under_a_second(tmp_path: Path) -> None:
    write_sparse(tmp_path / "x.npy", "<f4", (10**9, 250), last=7)
    begin = time.perf_counter()
    features = NodeFeatures.open(tmp_path / "x.npy")
    rows = features.rows(torch.tensor([5, 10**9 - 1]))
    assert time.perf_counter() - begin < 1
    assert rows.sum(dim=1).tolist() == [0, 7]


@pytest.mark.skipif(not Path("/proc/self/smaps").is_file(), reason="needs Linux")
@pytest.mark.parametrize(("nodes", "row_by_row"), [(10**9, True), (10**4, False)])
def test_what_lies_around_a_row_is_not_read_of_a_file_larger_than_memory(
    tmp_path: Path, nodes: int, row_by_row: bool
) -> None:
    path = tmp_path / "x.npy"
    write_sparse(path, "<f4", (nodes, 250))
    features = NodeFeatures.open(path)
    # Copying all of it to a GPU is faster with what lies around.
    assert "rr" not in flags_of_mapping(path)
    features.rows(torch.tensor([5, nodes - 1]))
    assert ("rr" in flags_of_mapping(path)) == row_by_row


def flags_of_mapping(path: Path) -> list[str]:
    """What the system was told about the memory that a file is mapped to."""
    lines = iter(Path("/proc/self/smaps").read_text().splitlines())
    assert any(line.endswith(f" {path}") for line in lines)
    return next(line.split() for line in lines if line.startswith("VmFlags:"))


def test_an_array_is_mapped_as_it_was_written(tmp_path: Path) -> None:
    values = np.arange(12, dtype=np.float16).reshape(4, 3)
    np.save(tmp_path / "x.npy", values)
    assert torch.equal(open_array(tmp_path / "x.npy"), torch.from_numpy(values))


def test_what_is_no_array_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    with pytest.raises(UserError, match="No such file"):
        open_array(path)
    np.save(path, np.zeros((100, 3)))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(UserError, match="bytes are fewer than its header says"):
        open_array(path)
    path.write_bytes(b"these are no numbers")
    with pytest.raises(UserError, match="file of numbers"):
        open_array(path)
    np.save(path, np.array([{}]), allow_pickle=True)
    with pytest.raises(UserError, match="file of numbers"):
        open_array(path)
    np.save(path, np.array(["a", "b"]))
    with pytest.raises(UserError, match="an array of <U1 with shape"):
        open_array(path)
