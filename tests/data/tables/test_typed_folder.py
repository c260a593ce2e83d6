"""A folder with a table for each node type and each edge type."""

import shutil
from pathlib import Path

import pytest
import torch

import tempergat
from tempergat.base import UserError
from tempergat.data import ReadOptions, as_dataset

TABLES = {
    "nodes_paper.csv": "id,label,words,year\n"
    + "".join(f"p{n},{'ab'[n % 2]},{n % 2},{n}\n" for n in range(20)),
    "nodes_author.csv": "id\nann\nbob\neve\n",
    "edges_author__writes__paper.csv": "source,target,order\n"
    + "".join(f"{('ann', 'bob', 'eve')[n % 3]},p{n},1\n" for n in range(20)),
    "edges_paper__paper.csv": "source,target\np0,p1\np1,p0\n",
}
WRITES, REVERSE = ("author", "writes", "paper"), ("paper", "rev_writes", "author")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in TABLES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_every_table_is_a_node_type_or_an_edge_type(folder: Path) -> None:
    found = as_dataset(folder)
    data = found.data
    assert found.target == "paper"
    assert data["paper"].x.shape == (20, 2)
    assert "x" not in data["author"]
    assert data["author"].num_nodes == 3
    assert found.predicted.names == ("a", "b")
    assert found.node_ids[:2] == ("p0", "p1")
    assert found.feature_names == ("words", "year")
    by_pair = set(map(tuple, data[WRITES].edge_index.T.tolist()))
    assert by_pair == {(n % 3, n) for n in range(20)}
    assert data["paper", "to", "paper"].edge_index.T.tolist() == [[0, 1], [1, 0]]


def test_edges_that_lead_one_way_are_followed_both_ways(folder: Path) -> None:
    found = as_dataset(folder)
    forth, back = (found.data[kind].edge_index for kind in (WRITES, REVERSE))
    assert set(map(tuple, back.flip(0).T.tolist())) == set(map(tuple, forth.T.tolist()))
    assert any("author__writes__paper lead one way" in note for note in found.notes)
    asked_for = as_dataset(folder, options=ReadOptions(directed=False))
    assert asked_for.data.edge_types == found.data.edge_types
    assert not any("lead one way" in note for note in asked_for.notes)
    directed = as_dataset(folder, options=ReadOptions(directed=True))
    assert directed.data.edge_types == [WRITES, ("paper", "to", "paper")]


def test_the_split_may_be_a_column(folder: Path) -> None:
    lines = TABLES["nodes_paper.csv"].splitlines()
    words = ("train", "train", "val", "test")
    rows = [f"{line},{words[n // 2 % 4]}" for n, line in enumerate(lines[1:])]
    table = "\n".join([f"{lines[0]},split", *rows])
    (folder / "nodes_paper.csv").write_text(table)
    found = as_dataset(folder)
    assert found.split == "given with the graph"
    assert int(found.store.train_mask.sum()) == 12


def renamed(old: str, new: str):
    return lambda folder: shutil.move(folder / old, folder / new)


def without_labels(folder: Path) -> None:
    (folder / "nodes_paper.csv").write_text(
        "id,x\n" + "".join(f"p{n},1\n" for n in range(20))
    )


def other_labels(folder: Path) -> None:
    (folder / "nodes_author.csv").write_text("id,label\nann,1\nbob,2\neve,1\n")


def unknown_node(folder: Path) -> None:
    (folder / "edges_paper__paper.csv").write_text("source,target\np0,ann\n")


def no_edges(folder: Path) -> None:
    for path in folder.glob("edges_*"):
        path.unlink()


WRITES_FILE = "edges_author__writes__paper.csv"


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        (lambda _: None, {"target": "papr"}, "no nodes_papr.csv; did you mean paper"),
        (lambda _: None, {"target": "author"}, "nodes_author.csv has no column label"),
        (without_labels, {}, "no table of nodes in .* has a column label"),
        (other_labels, {}, "labels for the node types author, paper; choose"),
        (unknown_node, {}, "target is 'ann', but nodes_paper.csv has no such node"),
        (no_edges, {}, "no table of edges; name one like edges_author__to__author"),
        (
            renamed(WRITES_FILE, "edges_author__writes__papr.csv"),
            {},
            "names the node type 'papr', but there is no nodes_papr.csv; did you mean",
        ),
        (renamed(WRITES_FILE, "edges_author.csv"), {}, "does not say which nodes"),
        (lambda _: None, {"edge_weight": "order"}, "leave --edge-features and"),
    ],
)
def test_what_contradicts_itself_is_refused_in_one_line(
    folder: Path, change: object, options: dict[str, str], words: str
) -> None:
    change(folder)  # type: ignore[operator]
    with pytest.raises(UserError, match=words) as refused:
        as_dataset(folder, options=ReadOptions(**options))
    assert "\n" not in str(refused.value)


@pytest.fixture
def model(folder: Path) -> tempergat.TrainedModel:
    return tempergat.train(
        *(folder, "gat"), settings={"epochs": 2, "hidden": 8, "heads": 2}, device="cpu"
    )


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
def test_predict_matches_the_features_of_a_typed_folder_by_name(
    folder: Path, model: tempergat.TrainedModel
) -> None:
    expected = model.predict_proba(folder)
    rows = "".join(f"p{n},{n},{n % 2}\n" for n in range(20))
    (folder / "nodes_paper.csv").write_text(f"id,year,words\n{rows}")
    assert torch.equal(model.predict_proba(folder), expected)
    (folder / "nodes_paper.csv").write_text(f"id,year,length\n{rows}")
    with pytest.raises(UserError, match=r"type paper of .* lacks words and has length"):
        model.predict(folder)


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
def test_learned_vectors_are_not_given_to_other_nodes(
    folder: Path, model: tempergat.TrainedModel
) -> None:
    (folder / "nodes_author.csv").write_text("id\neve\nbob\nann\n")
    with pytest.raises(UserError, match=r"type author, but .* in another order"):
        model.predict(folder)
