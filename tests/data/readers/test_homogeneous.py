"""Benchmark graphs, against the published counts and PyG's own readers."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.datasets import (
    Actor,
    Amazon,
    CitationFull,
    Coauthor,
    HeterophilousGraphDataset,
)
from torch_geometric.utils import sort_edge_index

from tempergat.base.errors import UserError
from tempergat.data import load
from tempergat.data.catalog.entries import CATALOG
from tempergat.data.fetch.locate import obtain
from tempergat.data.splits import make_split
from tests.data.conftest import require_raw_files

MASKS = ("train_mask", "val_mask", "test_mask")


# The folder, the file and the class with which PyG reads the same files. PyG knows
# five names of heterophilous graphs; others of this layout are read under one of them.
_TOLOKERS = ("tolokers/raw/tolokers.npz", HeterophilousGraphDataset, "Tolokers")
PYG: dict[str, tuple[str, Callable[..., Any], str]] = {
    "tolokers": _TOLOKERS,
    "squirrel_filtered": _TOLOKERS,
    "wisconsin": _TOLOKERS,
    "cornell": _TOLOKERS,
    "amazon_photo": ("Photo/raw/amazon_electronics_photo.npz", Amazon, "Photo"),
    "cora_ml": ("cora_ml/raw/cora_ml.npz", CitationFull, "Cora_ML"),
    "citeseer_full": ("citeseer/raw/citeseer.npz", CitationFull, "CiteSeer"),
    "coauthor_physics": ("Physics/raw/ms_academic_phy.npz", Coauthor, "Physics"),
}
WITHOUT_PYG = ("texas_4_classes", "flickr", "blogcatalog", "facebook", "twitch_de")


def read_with_pyg(name: str, root: Path) -> Data:
    paths = obtain(CATALOG[name], root)
    if name == "actor":
        raw = root / "pyg" / "raw"
        raw.mkdir(parents=True)
        for file, path in paths.items():
            shutil.copy(path, raw / file)
        return Actor(str(root / "pyg"))[0]
    place, dataset, pyg_name = PYG[name]
    (path,) = paths.values()
    (root / "pyg" / place).parent.mkdir(parents=True)
    shutil.copy(path, root / "pyg" / place)
    return dataset(str(root / "pyg"), pyg_name)[0]


def load_with_published_counts(name: str, root: Path, sparse: bool = False) -> Data:
    require_raw_files(name, root)
    data, entry = load(name, root, sparse=sparse).data, CATALOG[name]
    assert (data.num_nodes, data.num_edges) == (entry.num_nodes, entry.num_edges)
    assert data.x.shape[1] == entry.num_features
    assert data.y[data.y >= 0].unique().tolist() == list(range(entry.num_classes))
    return data


@pytest.mark.parametrize(
    "name",
    [
        "actor",
        *(n for n in PYG if n != "coauthor_physics"),
        # PyG holds its 34,493 x 8,415 features dense.
        pytest.param("coauthor_physics", marks=pytest.mark.slow),
    ],
)
def test_graph_equals_the_table_and_the_one_pyg_reads(
    name: str, tmp_path: Path
) -> None:
    data, entry = load_with_published_counts(name, tmp_path), CATALOG[name]
    expected = read_with_pyg(name, tmp_path)
    assert torch.equal(data.x, expected.x)
    assert torch.equal(data.y, expected.y)
    assert torch.equal(data.edge_index, sort_edge_index(expected.edge_index))
    if entry.num_splits:
        for number in (0, 7):
            chosen = load(name, tmp_path, split=number).data
            for mask in MASKS:
                assert torch.equal(chosen[mask], expected[mask][:, number])


# The note on columns of different scales.
@pytest.mark.filterwarnings("ignore:blogcatalog. values of one feature:UserWarning")
@pytest.mark.parametrize("name", WITHOUT_PYG)
def test_graph_that_pyg_cannot_read_has_the_published_counts(
    name: str, tmp_path: Path
) -> None:
    data = load_with_published_counts(name, tmp_path, sparse=True)
    assert data.x.layout == torch.sparse_csr
    assert sum(int(data[mask].sum()) for mask in MASKS) == int((data.y >= 0).sum())


def test_official_splits_are_chosen_by_number_or_by_seed(tmp_path: Path) -> None:
    require_raw_files("actor", tmp_path)
    first, second = (load("actor", tmp_path, split=n) for n in (0, 1))
    assert first.fingerprint != second.fingerprint
    assert load("actor", tmp_path).fingerprint == first.fingerprint
    assert load("actor", tmp_path, split_seed=1).fingerprint == second.fingerprint
    assert load("actor", tmp_path, split_seed=11).fingerprint == second.fingerprint
    with pytest.raises(UserError, match="no split 10; choose 0 to 9"):
        load("actor", tmp_path, split=10)


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


def test_percentages_replace_an_official_split(tmp_path: Path) -> None:
    require_raw_files("actor", tmp_path)
    data = load("actor", tmp_path, split="10/20/30", split_seed=3).data
    assert [int(data[mask].sum()) for mask in MASKS] == [760, 1520, 2280]
    assert not (data.train_mask & data.val_mask).any()


def test_unlabelled_nodes_are_in_no_made_split() -> None:
    labels = np.where(np.arange(1000) % 2 == 0, 3, -1)
    masks = make_split(labels, "50/30/20", seed=0)
    assert [int(masks[mask].sum()) for mask in MASKS] == [250, 150, 100]
    assert not np.any([masks[mask][1::2] for mask in MASKS])


@pytest.mark.parametrize("split", ["60/20", "a/b/c", "0/50/50", "80/20/20", "-1/1/1"])
def test_senseless_percentages_are_refused(split: str) -> None:
    with pytest.raises(UserError, match="split"):
        load("csbm", n=100, split=split)


def test_damaged_row_of_actor_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_raw_files("actor", tmp_path)
    raw = tmp_path / "actor" / "raw"
    raw.mkdir(parents=True)
    for file, path in obtain(CATALOG["actor"], tmp_path).items():
        shutil.copyfile(path, raw / file)
    monkeypatch.delenv("TEMPERGAT_MIRROR")
    table = raw / "out1_graph_edges.txt"
    table.write_text(table.read_text().replace("723\t7283", "723\t9999", 1))
    with pytest.raises(UserError, match=r"out1_graph_edges.txt has sha256"):
        load("actor", tmp_path)
    import dataclasses

    from tempergat.data.named_graphs import load_entry

    files = tuple(
        dataclasses.replace(file, size=None, sha256=None)
        for file in CATALOG["actor"].files
    )
    unchecked = dataclasses.replace(CATALOG["actor"], files=files)
    with pytest.raises(UserError, match=r"out1_graph_edges.txt, row 2"):
        load_entry(unchecked, tmp_path)


def test_fingerprint_is_the_same_in_every_width_of_integers() -> None:
    from tempergat.data.dataset import hash_array

    wide = np.arange(10).reshape(2, 5)
    assert hash_array(wide) == hash_array(wide.astype(np.int32))
    assert hash_array(wide) != hash_array(wide.T)
    assert hash_array(wide) != hash_array(wide.astype(np.float64))
