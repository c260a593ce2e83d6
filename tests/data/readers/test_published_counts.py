"""Datasets from their real files, against published counts and PyG's own readers."""

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.datasets import (
    DBLP,
    IMDB,
    Actor,
    Amazon,
    CitationFull,
    Coauthor,
    HeterophilousGraphDataset,
    Planetoid,
)
from torch_geometric.utils import sort_edge_index

from tempergat.base.errors import UserError
from tempergat.data import Dataset, load
from tempergat.data.catalog.entries import CATALOG
from tempergat.data.fetch.locate import obtain
from tests.data.conftest import require_raw_files
from tests.support.entries import load_entry

MASKS = ("train_mask", "val_mask", "test_mask")
# With what PyG reads the same files: a class and its arguments after the folder, where
# the files lie there, and the name of a single file, where PyG wants another one.
# PyG knows five names of heterophilous graphs; others are read under one of them.
_TOLOKERS = (HeterophilousGraphDataset, ("Tolokers",), "tolokers/raw", "tolokers.npz")
PYG: dict[str, tuple[Callable[..., Any], tuple[str, ...], str, str | None]] = {
    **{n: (Planetoid, (n,), f"{n}/raw", None) for n in ("cora", "citeseer", "pubmed")},
    "dblp": (DBLP, (), "raw", None),
    "imdb": (IMDB, (), "raw", None),
    "actor": (Actor, (), "raw", None),
    "tolokers": _TOLOKERS,
    "squirrel_filtered": _TOLOKERS,
    "wisconsin": _TOLOKERS,
    "cornell": _TOLOKERS,
    "amazon_photo": (Amazon, ("Photo",), "Photo/raw", "amazon_electronics_photo.npz"),
    "cora_ml": (CitationFull, ("Cora_ML",), "cora_ml/raw", "cora_ml.npz"),
    "citeseer_full": (CitationFull, ("CiteSeer",), "citeseer/raw", "citeseer.npz"),
    "coauthor_physics": (Coauthor, ("Physics",), "Physics/raw", "ms_academic_phy.npz"),
}
WITHOUT_PYG = ("texas_4_classes", "flickr", "blogcatalog", "facebook", "twitch_de")
# Nodes of the first official split, and of each type.
SPLITS = {
    "cora": [140, 500, 1000],
    "citeseer": [120, 500, 1000],
    "pubmed": [60, 500, 1000],
    "dblp": [400, 400, 3257],
    "imdb": [400, 400, 3478],
}
NODES = {
    "dblp": {"author": 4057, "paper": 14328, "term": 7723, "conference": 20},
    "imdb": {"movie": 4278, "director": 2081, "actor": 5257},
}


def read_with_pyg(name: str, root: Path) -> Data | HeteroData:
    dataset, arguments, folder, only = PYG[name]
    raw = root / "pyg" / folder
    raw.mkdir(parents=True)
    for file, path in obtain(CATALOG[name], root).items():
        shutil.copy(path, raw / (only or file))
    return dataset(str(root / "pyg"), *arguments)[0]


def load_with_published_counts(name: str, root: Path, sparse: bool = False) -> Dataset:
    require_raw_files(name, root)
    dataset, entry = load(name, root, sparse=sparse), CATALOG[name]
    data, store = dataset.data, dataset.store
    assert (data.num_nodes, data.num_edges) == (entry.num_nodes, entry.num_edges)
    assert store.x.shape == (store.num_nodes, entry.num_features)
    assert store.y[store.y >= 0].unique().tolist() == list(range(entry.num_classes))
    assert dataset.predicted.width == entry.num_classes
    if name in SPLITS:
        assert [int(store[mask].sum()) for mask in MASKS] == SPLITS[name]
    if isinstance(data, HeteroData):
        assert {kind: data[kind].num_nodes for kind in data.node_types} == NODES[name]
        assert len(data.edge_types) == entry.edge_types
        assert len(data.node_types) == entry.node_types
    return dataset


@pytest.mark.parametrize(
    "name",
    [
        *(name for name in PYG if name != "coauthor_physics"),
        # PyG holds its 34,493 x 8,415 features dense.
        pytest.param("coauthor_physics", marks=pytest.mark.slow),
    ],
)
def test_graph_equals_the_table_and_the_one_pyg_reads(
    name: str, tmp_path: Path
) -> None:
    dataset = load_with_published_counts(name, tmp_path)
    expected = read_with_pyg(name, tmp_path)
    is_typed = isinstance(expected, HeteroData)
    if is_typed:
        assert dataset.data.metadata() == expected.metadata()
    for theirs in expected.stores:
        ours = dataset.data[theirs._key] if theirs._key else dataset.data
        if "x" in theirs:
            assert torch.equal(ours.x, theirs.x)
        if "edge_index" in theirs:
            edges = sort_edge_index(ours.edge_index) if is_typed else ours.edge_index
            assert torch.equal(edges, sort_edge_index(theirs.edge_index))
    classified = expected[dataset.target] if is_typed else expected
    known = dataset.store.y >= 0
    # The nodes that Citeseer's files leave out have a label in PyG.
    assert int((~known).sum()) == (15 if name == "citeseer" else 0)
    assert torch.equal(dataset.store.y[known], classified.y[known])
    for number in (0, 7)[: CATALOG[name].num_splits]:
        store = load(name, tmp_path, split=number).store
        for mask in MASKS:
            wanted = classified[mask].reshape(len(known), -1)[:, number]
            assert torch.equal(store[mask], wanted)


# The note on columns of different scales.
@pytest.mark.filterwarnings("ignore:blogcatalog. values of one feature:UserWarning")
@pytest.mark.parametrize("name", WITHOUT_PYG)
def test_graph_that_pyg_cannot_read_has_the_published_counts(
    name: str, tmp_path: Path
) -> None:
    data = load_with_published_counts(name, tmp_path, sparse=True).data
    assert data.x.layout == torch.sparse_csr
    assert sum(int(data[mask].sum()) for mask in MASKS) == int((data.y >= 0).sum())


def test_nodes_citeseer_leaves_out_have_neither_features_nor_label(
    tmp_path: Path,
) -> None:
    require_raw_files("citeseer", tmp_path)
    data = load("citeseer", tmp_path, sparse=False).data
    unlabelled = data.y == -1
    assert int(unlabelled.sum()) == 15
    assert not data.x[unlabelled].any()
    assert not (data.train_mask | data.val_mask | data.test_mask)[unlabelled].any()


@pytest.mark.parametrize("name", ["cora", "citeseer", "pubmed"])
def test_bag_of_words_stays_sparse_unless_asked(name: str, tmp_path: Path) -> None:
    require_raw_files(name, tmp_path)
    automatic = load(name, tmp_path)
    dense = load(name, tmp_path, sparse=False)
    sparse = load(name, tmp_path, sparse=True)
    mostly_zeros = name != "pubmed"
    assert (automatic.data.x.layout == torch.sparse_csr) == mostly_zeros
    assert dense.data.x.layout == torch.strided
    assert sparse.data.x.layout == torch.sparse_csr
    assert torch.equal(sparse.data.x.to_dense(), dense.data.x)
    assert automatic.fingerprint == dense.fingerprint == sparse.fingerprint


def test_official_splits_are_chosen_by_number_or_by_seed(tmp_path: Path) -> None:
    require_raw_files("actor", tmp_path)
    first, second = (load("actor", tmp_path, split=n) for n in (0, 1))
    assert first.fingerprint != second.fingerprint
    assert load("actor", tmp_path).fingerprint == first.fingerprint
    assert load("actor", tmp_path, split_seed=1).fingerprint == second.fingerprint
    assert load("actor", tmp_path, split_seed=11).fingerprint == second.fingerprint
    with pytest.raises(UserError, match="no split 10; choose 0 to 9"):
        load("actor", tmp_path, split=10)
    made = load("actor", tmp_path, split="10/20/30", split_seed=3).data
    assert [int(made[mask].sum()) for mask in MASKS] == [760, 1520, 2280]
    assert not (made.train_mask & made.val_mask).any()


def test_made_split_depends_on_its_seed_alone(tmp_path: Path) -> None:
    require_raw_files("amazon_photo", tmp_path)
    default, same, other = (
        load("amazon_photo", tmp_path, split_seed=seed) for seed in (None, 0, 1)
    )
    assert default.fingerprint == same.fingerprint != other.fingerprint
    assert default.split == "made: 60/20/20 with seed 0"
    masks = torch.stack([default.data[mask] for mask in MASKS])
    assert masks.sum(dim=0).eq(1).all()
    assert masks.sum(dim=1).tolist() == [4590, 1530, 1530]
    with pytest.raises(UserError, match="no numbered splits"):
        load("amazon_photo", tmp_path, split=0)


@pytest.fixture
def raw_copy(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The raw files of a dataset in the data root, and no mirror."""
    require_raw_files(request.param, tmp_path)
    raw = tmp_path / request.param / "raw"
    raw.mkdir(parents=True)
    for file, path in obtain(CATALOG[request.param], tmp_path).items():
        shutil.copyfile(path, raw / file)
    monkeypatch.delenv("TEMPERGAT_MIRROR")
    return raw


@pytest.mark.parametrize("raw_copy", ["actor"], indirect=True)
def test_damaged_row_of_actor_is_named(raw_copy: Path, tmp_path: Path) -> None:
    table = raw_copy / "out1_graph_edges.txt"
    table.write_text(table.read_text().replace("723\t7283", "723\t9999", 1))
    with pytest.raises(UserError, match=r"out1_graph_edges.txt has sha256"):
        load("actor", tmp_path)
    files = tuple(
        dataclasses.replace(file, size=None, sha256=None)
        for file in CATALOG["actor"].files
    )
    unchecked = dataclasses.replace(CATALOG["actor"], files=files)
    with pytest.raises(UserError, match=r"out1_graph_edges.txt, row 2"):
        load_entry(unchecked, tmp_path)


@pytest.mark.parametrize("raw_copy", ["imdb"], indirect=True)
def test_adjacency_that_leads_outside_is_refused(
    raw_copy: Path, tmp_path: Path
) -> None:
    with np.load(raw_copy / "adjM.npz") as opened:
        arrays = {key: opened[key] for key in opened.files}
    arrays["indices"][5] = 10**9
    np.savez(raw_copy / "adjM.npz", **arrays)
    with pytest.raises(UserError, match=r"adjM.npz: .* are not a sparse matrix"):
        load("imdb", tmp_path)
