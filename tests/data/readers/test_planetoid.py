"""Cora, Citeseer and Pubmed against the paper's table and PyG's own reader."""

import shutil
from pathlib import Path

import pytest
import torch
from torch_geometric.datasets import Planetoid
from torch_geometric.utils import sort_edge_index

from tempergat.data import load
from tempergat.data.catalog.entries import CATALOG
from tempergat.data.fetch.locate import is_local, obtain

SPLIT = {"cora": 140, "citeseer": 120, "pubmed": 60}


@pytest.fixture(params=["cora", "citeseer", "pubmed"])
def name(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if not is_local(CATALOG[request.param], tmp_path):
        pytest.skip(f"needs the raw files of {request.param} in TEMPERGAT_MIRROR")
    return str(request.param)


def test_counts_equal_the_papers_table(name: str, tmp_path: Path) -> None:
    dataset = load(name, tmp_path)
    entry = CATALOG[name]
    assert dataset.data.num_nodes == entry.num_nodes
    assert dataset.data.num_edges == entry.num_edges
    assert dataset.data.x.shape == (entry.num_nodes, entry.num_features)
    assert int(dataset.data.y.max()) + 1 == entry.num_classes == dataset.num_classes
    assert int(dataset.data.train_mask.sum()) == SPLIT[name]
    assert int(dataset.data.val_mask.sum()) == 500
    assert int(dataset.data.test_mask.sum()) == 1000


def test_graph_equals_the_one_pyg_reads(name: str, tmp_path: Path) -> None:
    data = load(name, tmp_path, sparse=False).data
    raw = tmp_path / "pyg" / name / "raw"
    raw.mkdir(parents=True)
    for file, path in obtain(CATALOG[name], tmp_path).items():
        shutil.copy(path, raw / file)
    expected = Planetoid(str(tmp_path / "pyg"), name)[0]
    assert torch.equal(data.x, expected.x)
    assert torch.equal(data.edge_index, sort_edge_index(expected.edge_index))
    labelled = data.y >= 0
    assert torch.equal(data.y[labelled], expected.y[labelled])
    for mask in ("train_mask", "val_mask", "test_mask"):
        assert torch.equal(data[mask], expected[mask])


def test_nodes_citeseer_leaves_out_have_neither_features_nor_label(
    tmp_path: Path,
) -> None:
    if not is_local(CATALOG["citeseer"], tmp_path):
        pytest.skip("needs the raw files of citeseer in TEMPERGAT_MIRROR")
    data = load("citeseer", tmp_path, sparse=False).data
    unlabelled = data.y == -1
    assert int(unlabelled.sum()) == 15
    assert not data.x[unlabelled].any()
    assert not (data.train_mask | data.val_mask | data.test_mask)[unlabelled].any()


def test_bag_of_words_stays_sparse_unless_asked(name: str, tmp_path: Path) -> None:
    automatic = load(name, tmp_path)
    dense = load(name, tmp_path, sparse=False)
    sparse = load(name, tmp_path, sparse=True)
    mostly_zeros = name != "pubmed"
    assert (automatic.data.x.layout == torch.sparse_csr) == mostly_zeros
    assert dense.data.x.layout == torch.strided
    assert sparse.data.x.layout == torch.sparse_csr
    assert torch.equal(sparse.data.x.to_dense(), dense.data.x)
    assert automatic.fingerprint == dense.fingerprint == sparse.fingerprint
