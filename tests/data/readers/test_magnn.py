"""DBLP and IMDB against the counts and PyG's own readers."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.datasets import DBLP, IMDB
from torch_geometric.utils import sort_edge_index

from tempergat.base.errors import UserError
from tempergat.data import load
from tempergat.data.catalog.entries import CATALOG
from tempergat.data.fetch.locate import obtain
from tests.data.conftest import require_raw_files

MASKS = ("train_mask", "val_mask", "test_mask")
NODES = {
    "dblp": {"author": 4057, "paper": 14328, "term": 7723, "conference": 20},
    "imdb": {"movie": 4278, "director": 2081, "actor": 5257},
}
SPLITS = {"dblp": [400, 400, 3257], "imdb": [400, 400, 3478]}


@pytest.mark.parametrize("name", ["dblp", "imdb"])
def test_graph_equals_the_table_and_the_one_pyg_reads(
    name: str, tmp_path: Path
) -> None:
    require_raw_files(name, tmp_path)
    dataset = load(name, tmp_path, sparse=False)
    data, entry = dataset.data, CATALOG[name]
    assert {kind: data[kind].num_nodes for kind in data.node_types} == NODES[name]
    assert data.num_edges == entry.num_edges
    assert len(data.edge_types) == entry.edge_types
    assert len(data.node_types) == entry.node_types
    assert dataset.store.x.shape[1] == entry.num_features
    assert int(dataset.store.y.max()) + 1 == entry.num_classes
    assert [int(dataset.store[mask].sum()) for mask in MASKS] == SPLITS[name]

    raw = tmp_path / "pyg" / "raw"
    raw.mkdir(parents=True)
    for file, path in obtain(entry, tmp_path).items():
        shutil.copy(path, raw / file)
    expected = (DBLP if name == "dblp" else IMDB)(str(tmp_path / "pyg"))[0]
    assert data.metadata() == expected.metadata()
    for kind in expected.edge_types:
        ours, theirs = data[kind].edge_index, expected[kind].edge_index
        assert torch.equal(sort_edge_index(ours), sort_edge_index(theirs))
    for kind in expected.node_types:
        if "x" in expected[kind]:
            assert torch.equal(data[kind].x, expected[kind].x)
    assert torch.equal(dataset.store.y, expected[dataset.target].y)
    for mask in MASKS:
        assert torch.equal(dataset.store[mask], expected[dataset.target][mask])


def test_adjacency_that_leads_outside_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_raw_files("imdb", tmp_path)
    raw = tmp_path / "imdb" / "raw"
    raw.mkdir(parents=True)
    for file, path in obtain(CATALOG["imdb"], tmp_path).items():
        shutil.copyfile(path, raw / file)
    monkeypatch.delenv("TEMPERGAT_MIRROR")
    with np.load(raw / "adjM.npz") as opened:
        arrays = {key: opened[key] for key in opened.files}
    arrays["indices"][5] = 10**9
    np.savez(raw / "adjM.npz", **arrays)
    with pytest.raises(UserError, match=r"adjM.npz holds a broken sparse matrix"):
        load("imdb", tmp_path)
