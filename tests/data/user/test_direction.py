"""Which way edges of a user graph are followed, and what is said about it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import tempergat
from tempergat import ReadOptions, UserError, load
from tempergat.data import as_dataset, describe, load_splits
from tests.support.tiny_graph import write_recipe

ONCE = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]
BOTH = [*ONCE, *((b, a) for a, b in ONCE)]
SOME = [*ONCE, (1, 0), (2, 1)]
ADDED = "read as an undirected graph"
AS_GIVEN = "followed as given"


def write_tables(folder: Path, edges: list[tuple[int, int]]) -> Path:
    folder.mkdir()
    rows = "".join(f"{node},{node % 2}\n" for node in range(10))
    (folder / "nodes.csv").write_text(f"f,label\n{rows}")
    lines = "".join(f"{a},{b}\n" for a, b in edges)
    (folder / "edges.csv").write_text(f"source,target\n{lines}")
    return folder


def write_npz(folder: Path, edges: list[tuple[int, int]]) -> Path:
    data = graph(edges)
    path = folder.with_suffix(".npz")
    np.savez(path, edge_index=data.edge_index, x=data.x, y=data.y)
    return path


def write_pt(folder: Path, edges: list[tuple[int, int]]) -> Path:
    path = folder.with_suffix(".pt")
    torch.save(graph(edges), path)
    return path


def graph(edges: list[tuple[int, int]]) -> Data:
    ends = torch.tensor(edges).T.contiguous()
    return Data(x=torch.rand(10, 2), y=torch.arange(10) % 2, edge_index=ends)


def pairs(dataset: tempergat.data.Dataset) -> list[tuple[int, int]]:
    return sorted(map(tuple, dataset.data.edge_index.T.tolist()))


FORMS = {"tables": write_tables, "npz": write_npz, "pt": write_pt}


@pytest.mark.parametrize("form", ["tables", "npz"])
def test_edges_that_are_listed_once_are_followed_both_ways(
    form: str, tmp_path: Path
) -> None:
    dataset = as_dataset(FORMS[form](tmp_path / "g", [*ONCE, (7, 7)]))
    assert pairs(dataset) == sorted([*BOTH, (7, 7)])
    assert dataset.undirected is True
    assert len(dataset.notes) == 1
    assert dataset.notes[0].startswith("0% of the edges of ")
    assert ADDED in dataset.notes[0]
    assert "--directed" in dataset.notes[0]


@pytest.mark.parametrize("form", FORMS)
def test_edges_that_are_listed_both_ways_need_no_note(
    form: str, tmp_path: Path
) -> None:
    dataset = as_dataset(FORMS[form](tmp_path / "g", [*BOTH, (7, 7)]))
    assert pairs(dataset) == sorted([*BOTH, (7, 7)])
    assert dataset.undirected is True
    assert dataset.notes == ()


@pytest.mark.parametrize("form", ["tables", "npz"])
def test_edges_that_are_partly_listed_both_ways_are_a_question(
    form: str, tmp_path: Path
) -> None:
    path = FORMS[form](tmp_path / "g", SOME)
    with pytest.raises(UserError, match=r"57% .* choose --directed or --undirected"):
        as_dataset(path)
    one_way = as_dataset(path, options=ReadOptions(directed=True))
    both_ways = as_dataset(path, options=ReadOptions(directed=False))
    assert pairs(one_way) == sorted(SOME)
    assert pairs(both_ways) == sorted(BOTH)
    assert (one_way.undirected, both_ways.undirected) == (False, True)
    assert one_way.notes == both_ways.notes == ()


def test_edges_of_a_pyg_object_are_followed_as_given(tmp_path: Path) -> None:
    for given in (graph(ONCE), write_pt(tmp_path / "g", ONCE)):
        dataset = as_dataset(given)
        assert pairs(dataset) == ONCE
        assert dataset.undirected is False
        assert AS_GIVEN in dataset.notes[0]
        assert "--undirected" in dataset.notes[0]
    assert as_dataset(graph(SOME)).notes == ()
    both = as_dataset(graph(ONCE), options=ReadOptions(directed=False))
    assert pairs(both) == sorted(BOTH)


def test_public_functions_warn_of_notes(tmp_path: Path) -> None:
    one_way = graph(ONCE)
    recipe = write_recipe(tmp_path / "recipe.yaml")
    quick: dict[str, Any] = {"progress": False, "device": "cpu", "recipe": recipe}
    with pytest.warns(UserWarning, match=AS_GIVEN):
        tempergat.compare(one_way, methods=["gat"], runs=1, **quick)
    with pytest.warns(UserWarning, match=AS_GIVEN):
        model = tempergat.train(one_way, "gat", **quick)
    with pytest.warns(UserWarning, match=AS_GIVEN):
        tempergat.predict(model, one_way)


def test_options_are_refused_where_a_graph_is_always_read_the_same_way() -> None:
    options = ReadOptions(label="class")
    with pytest.raises(UserError, match="--label is for your own graph, but csbm"):
        as_dataset("csbm", options=options)
    with pytest.raises(UserError, match=r"--label .* a Dataset has been read already"):
        load_splits(load("csbm"), options=options)


def test_repeated_edges_of_a_pyg_object_are_merged_with_a_note() -> None:
    dataset = as_dataset(graph([*BOTH, (0, 1), (0, 1)]))
    assert pairs(dataset) == sorted(BOTH)
    assert dataset.notes[0].startswith("2 edges of graph repeat an earlier")


def test_reverse_edges_get_the_columns_of_their_edge(tmp_path: Path) -> None:
    folder = write_tables(tmp_path / "g", [])
    table = "source,target,weight,kind\n1,0,0.5,3\n1,2,2,4\n"
    (folder / "edges.csv").write_text(table)
    options = ReadOptions(edge_weight="weight", edge_features=("kind", "weight"))
    dataset = as_dataset(folder, options=options)
    assert pairs(dataset) == [(0, 1), (1, 0), (1, 2), (2, 1)]
    assert dataset.data.edge_weight.tolist() == [0.5, 0.5, 2, 2]
    assert dataset.data.edge_attr.tolist() == [[3, 0.5], [3, 0.5], [4, 2], [4, 2]]
    assert dataset.edge_feature_names == ("kind", "weight")
    assert dataset.edge_weight_name == "weight"


def test_edge_columns_are_used_only_when_asked_for() -> None:
    data = graph(BOTH)
    without = as_dataset(data).fingerprint
    data.edge_attr = torch.arange(20.0).reshape(10, 2)
    data.edge_weight = torch.ones(10)
    plain = as_dataset(data)
    assert "edge_attr" not in plain.data
    assert "edge_weight" not in plain.data
    assert "the edge columns edge_attr, edge_weight are not used" in plain.notes[0]
    (note,) = as_dataset(data, options=ReadOptions(edge_features=("edge_attr",))).notes
    assert "column edge_weight is not used" in note
    assert "add --edge-weight edge_weight or --edge-features edge_weight" in note
    used = as_dataset(data, options=ReadOptions(edge_features=("edge_attr",)))
    assert used.edge_feature_names == ("edge_attr[0]", "edge_attr[1]")
    assert used.data.edge_attr.shape == (10, 2)
    assert len({without, plain.fingerprint, used.fingerprint}) == 3
    with pytest.raises(UserError, match="--edge-weight names 'w', but the edges of"):
        as_dataset(data, options=ReadOptions(edge_weight="w"))
    data.edge_weight[3] = -1
    with pytest.raises(UserError, match="edge_weight of edge 3 is -1"):
        as_dataset(data, options=ReadOptions(edge_weight="edge_weight"))


@pytest.mark.parametrize(
    ("edges", "line"),
    [(BOTH, "edges are followed both ways"), (ONCE, "edges are followed one way")],
)
def test_the_description_says_which_way_edges_are_followed(
    edges: list[tuple[int, int]], line: str
) -> None:
    assert f"; {line}" in describe(as_dataset(graph(edges))).splitlines()[2]
    assert describe(load("csbm")).splitlines()[2] == "edges are followed both ways"
