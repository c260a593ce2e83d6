"""Graphs in every form a caller may have them in, and all splits of one graph."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from tempergat.base.errors import UserError
from tempergat.data import as_dataset, csbm, load, load_splits
from tempergat.data import dataset as dataset_module
from tempergat.data.dataset import MASKS
from tempergat.data.user import open_graph as user_graphs
from tests.data.conftest import require_raw_files
from tests.support.tiny_graph import write_graph, write_graph_of_splits

FIXTURE = Path(__file__).parents[1] / "fixtures" / "small_graph"


def test_a_dataset_is_returned_as_it_is() -> None:
    graph = csbm(n=60)
    assert as_dataset(graph) is graph
    assert load_splits(graph) == {0: graph}
    with pytest.raises(UserError, match="a Dataset has its split already"):
        as_dataset(graph, split="60/20/20")
    with pytest.raises(UserError, match="a Dataset has its split already"):
        load_splits(graph, split_seed=3)


def test_a_dataset_of_one_of_several_splits_keeps_its_number(tmp_path: Path) -> None:
    graph = load(write_graph_of_splits(tmp_path / "g.npz", 4), split=2)
    assert load_splits(graph) == {2: graph}


def test_a_pyg_object_gives_the_same_dataset_as_its_file(tmp_path: Path) -> None:
    data = csbm(n=60).data
    torch.save(data, tmp_path / "g.pt")
    from_object, from_file = as_dataset(data), load(tmp_path / "g.pt")
    assert from_object.fingerprint == from_file.fingerprint
    assert from_object.split == "given with the graph"
    assert from_object.name == "graph"


def test_a_pyg_object_is_not_changed() -> None:
    data = Data(
        x=torch.ones(4, 2, dtype=torch.float64),
        y=torch.tensor([0, 1, 0, 1]),
        edge_index=torch.tensor([[3, 0, 0], [1, 2, 2]]),
    )
    before = data.clone()
    made = as_dataset(data, split="50/25/25")
    assert made.split == "made: 50/25/25 with seed 0, by class"
    assert made.data.edge_index.tolist() == [[0, 3], [2, 1]]
    assert set(data.keys()) == set(before.keys())
    for name in before.keys():  # noqa: SIM118
        assert torch.equal(data[name], before[name])
        assert data[name].dtype == before[name].dtype


def test_a_mistake_in_a_pyg_object_is_named() -> None:
    data = Data(x=torch.ones(2, 2), y=torch.tensor([0, 1]))
    with pytest.raises(UserError, match="graph has no edge_index"):
        as_dataset(data)


@pytest.mark.parametrize("graph", [None, 3, [1, 2]])
def test_anything_else_is_refused(graph: Any) -> None:
    with pytest.raises(UserError, match=f"the graph is a {type(graph).__name__}"):
        as_dataset(graph)


def test_an_empty_name_is_refused() -> None:
    with pytest.raises(UserError, match="the graph is ' '; give a name"):
        as_dataset(" ")


def test_a_path_is_called_by_the_name_of_its_file(tmp_path: Path) -> None:
    path = write_graph(tmp_path / "mine.npz")
    for graph in (path, str(path)):
        assert as_dataset(graph).name == "mine"
        assert as_dataset(graph).fingerprint == load(path).fingerprint
    assert as_dataset("csbm").name == "csbm"


def test_a_seed_that_would_change_nothing_is_refused(tmp_path: Path) -> None:
    path = write_graph(tmp_path / "mine.npz")
    for function in (as_dataset, load_splits):
        with pytest.raises(UserError, match="mine comes with one split; leave it out"):
            function(path, split_seed=1)
    made = as_dataset(path, split="60/20/20", split_seed=1)
    assert made.split == "made: 60/20/20 with seed 1, by class"


def test_a_graph_without_labels_is_loaded_for_prediction(tmp_path: Path) -> None:
    path = tmp_path / "g.npz"
    np.savez(path, x=np.ones((3, 2)), edge_index=np.array([[0, 1], [1, 2]]))
    found = as_dataset(path, labelled=False)
    assert found.predicted.width == 0
    assert not any(found.data[mask].any() for mask in MASKS)


def test_all_splits_of_a_user_graph_share_everything_but_the_masks(
    tmp_path: Path,
) -> None:
    path = write_graph_of_splits(tmp_path / "g.npz", 3)
    found = load_splits(path)
    assert list(found) == [0, 1, 2]
    for number, graph in found.items():
        alone = load(path, split=number)
        assert graph.fingerprint == alone.fingerprint
        assert (graph.split, graph.split_number) == (alone.split, number)
        assert graph.data.x is found[0].data.x
        assert graph.data.edge_index is found[0].data.edge_index
        for mask in MASKS:
            assert torch.equal(graph.data[mask], alone.data[mask])
    assert len({graph.fingerprint for graph in found.values()}) == 3
    assert list(load_splits(path, max_splits=2)) == [0, 1]
    assert list(load_splits(path, split=1)) == [1]
    assert list(load_splits(path, split_seed=5)) == [2]
    assert list(load_splits(path, split="60/20/20")) == [0]


def test_features_and_edges_are_hashed_once_for_all_splits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_graph_of_splits(tmp_path / "g.npz", 4)
    hashed: list[tuple[int, ...]] = []
    hash_array = dataset_module.hash_array

    def count(array: np.ndarray) -> str:
        hashed.append(array.shape)
        return hash_array(array)

    monkeypatch.setattr(dataset_module, "hash_array", count)
    opened = []
    read_npz = user_graphs.read_npz

    def count_reads(file: Path, *arguments: Any) -> Any:
        opened.append(file)
        return read_npz(file, *arguments)

    monkeypatch.setattr(user_graphs, "read_npz", count_reads)
    assert len(load_splits(path)) == 4
    assert len(opened) == 1
    assert hashed.count((60, 8)) == 1


def test_a_split_without_validation_nodes_is_refused(tmp_path: Path) -> None:
    path = write_graph_of_splits(tmp_path / "g.npz", 3)
    arrays = dict(np.load(path))
    arrays["val_mask"][:, 2] = False
    np.savez(path, **arrays)
    with pytest.raises(UserError, match="split 2 of g has no nodes in val_mask"):
        load_splits(path)
    assert list(load_splits(path, max_splits=2)) == [0, 1]


@pytest.mark.parametrize(
    ("name", "split", "expected"),
    [
        ("cora", 0, "69c0d0d752ec8b8e031ff5b4d4fc49dd12692c069c0af81279b3bef4e01b981a"),
        (
            "actor",
            3,
            "8623ce5f17a1b6af47c2c930a4a6593fd16d98f2244f90f2f9963b3605dcda7e",
        ),
        (
            "actor",
            9,
            "ecabd0d40e4edc73799a234e648706990a302e9131f041fe130f7e33b2580991",
        ),
        (
            "tolokers",
            0,
            "5545f53af396d0697cca4d4502186073373efd412c96ec33267f52101da3e8a5",
        ),
    ],
)
def test_fingerprints_of_official_splits_are_those_of_stored_runs(
    name: str, split: int, expected: str, tmp_path: Path
) -> None:
    require_raw_files(name, tmp_path)
    assert load_splits(name)[split].fingerprint == expected
    assert as_dataset(name, split=split).fingerprint == expected


def test_a_folder_has_the_fingerprint_of_stored_runs() -> None:
    expected = "85b5ee1a12ec246abe9ec824a9a210b3ebe4af1383764019d7d4a4fea096c83f"
    found = load_splits(FIXTURE / "graph")
    assert {n: graph.fingerprint for n, graph in found.items()} == {0: expected}


def test_the_demonstration_graph_is_that_of_stored_runs() -> None:
    expected = "c330cb3da59346c2252c1271f9ed7d94c901dc7c87fcd78a8830ef82cd19b9e3"
    demo = load("demo")
    assert (demo.name, demo.fingerprint) == ("demo", expected)
    same = load("csbm", a=10.0, b=5.0, rho=0.3)
    assert torch.equal(demo.data.x, same.data.x)
    assert demo.fingerprint == same.fingerprint


def test_csbm_is_the_same_graph_from_every_entry_point() -> None:
    expected = csbm().fingerprint
    assert load("csbm").fingerprint == expected
    assert as_dataset("csbm").fingerprint == expected
    assert load_splits("CSBM")[0].fingerprint == expected


def test_a_dataset_called_like_a_folder_here_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert as_dataset("demo").notes == ()
    (tmp_path / "demo").mkdir()
    (note,) = as_dataset("demo").notes
    assert (
        note == "demo is the dataset of that name; write ./demo for the file or folder"
    )
