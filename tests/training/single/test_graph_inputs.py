"""A graph to predict on is read as the training graph was."""

import csv
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tempergat.base import UserError
from tempergat.data import ReadOptions, as_dataset
from tempergat.training import TrainedModel, load_model, train
from tests.support.run_settings import small_graph
from tests.support.tiny_graph import write_recipe

FIXTURES = Path(__file__).parents[2] / "fixtures" / "small_graph"
WORDS = ("ape", "bee", "cow")
NAMES = ["age", "height", "income"]

WriteTable = Callable[..., Path]


@pytest.fixture
def write_table(tmp_path: Path) -> WriteTable:
    """Writes a folder of tables in which the first features give the class away."""
    rng = np.random.default_rng(0)
    classes = rng.integers(3, size=90)
    values = rng.normal(size=(90, 3)) + 4.0 * np.eye(3)[classes]
    sources, targets = rng.integers(90, size=(2, 150))

    def write(
        folder: str,
        order: list[str] = NAMES,
        names: dict[str, str] | None = None,
        labelled: bool = True,
        both_ways: bool = False,
    ) -> Path:
        path = tmp_path / folder
        path.mkdir()
        with open(path / "nodes.csv", "w", newline="") as file:
            writer = csv.writer(file)
            header = [(names or {}).get(name, name) for name in order]
            writer.writerow(["id", *header, *["label"] * labelled])
            for node, number in enumerate(classes):
                row = [values[node, NAMES.index(name)] for name in order]
                writer.writerow([f"n{node}", *row, *[WORDS[number]] * labelled])
        pairs = list(zip(sources, targets, strict=True))
        pairs += [(b, a) for a, b in pairs] if both_ways else []
        lines = "".join(f"n{a},n{b}\n" for a, b in pairs)
        (path / "edges.csv").write_text("source,target\n" + lines)
        return path

    return write


@pytest.fixture
def model(write_table: WriteTable, tmp_path: Path) -> TrainedModel:
    recipe = write_recipe(tmp_path / "recipe.yaml", epochs=30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = as_dataset(write_table("training"))
        return train(graph, "gat", recipe=recipe, device="cpu", progress=False)


def quietly(model: TrainedModel, path: Path) -> torch.Tensor:
    """Predictions where the notes on reading do not matter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.predict(path)


def test_columns_in_another_order_give_the_same_classes(
    model: TrainedModel, write_table: WriteTable, tmp_path: Path
) -> None:
    expected = quietly(model, tmp_path / "training")
    other = write_table("other", NAMES[::-1], labelled=False)
    assert torch.equal(quietly(model, other), expected)
    saved = load_model(model.save(tmp_path / "model.safetensors"), device="cpu")
    assert saved.feature_names == tuple(NAMES)
    assert saved.class_names == WORDS
    assert torch.equal(quietly(saved, other), expected)


def test_columns_of_other_names_are_refused_by_name(
    model: TrainedModel, write_table: WriteTable
) -> None:
    renamed = write_table("renamed", names={"height": "iq"})
    with pytest.raises(UserError, match=r"renamed lacks height and has iq, which"):
        quietly(model, renamed)
    fewer = write_table("fewer", NAMES[:2])
    with pytest.raises(UserError, match=r"fewer lacks income"):
        quietly(model, fewer)


def test_a_matrix_is_used_by_position_and_that_is_said(
    model: TrainedModel, tmp_path: Path
) -> None:
    data = as_dataset(tmp_path / "training").data
    expected = quietly(model, tmp_path / "training")
    bare = type(data)(x=data.x, edge_index=data.edge_index)
    with pytest.warns(UserWarning, match=r"in the order of training: age, height, inc"):
        classes = model.predict(bare)
    assert torch.equal(classes, expected)


def test_a_model_without_names_is_used_by_position_and_that_is_said() -> None:
    graph = replace(as_dataset(FIXTURES / "graph"), feature_names=None, scaling={})
    recipe = FIXTURES / "recipe.yaml"
    model = train(graph, "gcn", recipe=recipe, device="cpu", progress=False)
    with pytest.warns(UserWarning, match="knows no feature names, so the 8 features"):
        classes = model.predict(FIXTURES / "graph")
    assert torch.equal(classes, model.predict(graph))


def test_graphs_without_names_in_memory_are_used_without_a_word(tmp_path: Path) -> None:
    recipe = write_recipe(tmp_path / "recipe.yaml")
    graph = small_graph()
    model = train(graph, "gcn", recipe=recipe, device="cpu", progress=False)
    assert model.predict(graph.data).shape == (60,)


def test_the_options_of_training_are_used_again(
    write_table: WriteTable, tmp_path: Path
) -> None:
    recipe = write_recipe(tmp_path / "recipe.yaml")
    options = ReadOptions(directed=True, features=("age", "income"))
    path = write_table("training")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = train(
            path,
            "gat",
            recipe=recipe,
            device="cpu",
            progress=False,
            read_options=options,
        )
    model = load_model(model.save(tmp_path / "model.safetensors"), device="cpu")
    assert model.feature_names == ("age", "income")
    read = model.read_graph(path)
    assert read.feature_names == ("age", "income")
    assert read.undirected is False
    assert not any("both ways" in note for note in read.notes)
    changed = model.read_graph(path, ReadOptions(directed=False))
    assert changed.undirected is True
    (note,) = (note for note in changed.notes if "but the model was trained" in note)
    assert "are followed both ways" in note
    assert "--directed changes that" in note


def test_a_graph_listed_once_per_edge_is_read_as_in_training(
    model: TrainedModel, write_table: WriteTable
) -> None:
    both = write_table("both", both_ways=True, labelled=False)
    once = write_table("once", labelled=False)
    assert torch.equal(quietly(model, both), quietly(model, once))


@pytest.mark.parametrize(
    "options",
    [
        ReadOptions(edge_weight="edge_weight"),
        ReadOptions(edge_features=("edge_attr",)),
        ReadOptions(make_features="degree"),
        ReadOptions(directed=False),
    ],
)
def test_a_pyg_object_is_read_by_the_options_of_training(
    options: ReadOptions, tmp_path: Path
) -> None:
    data = small_graph().data.clone()
    data.edge_index = data.edge_index[:, data.edge_index[0] < data.edge_index[1]]
    edges = data.edge_index.size(1)
    data.edge_attr, data.edge_weight = torch.rand(edges, 2), torch.rand(edges)
    if options.make_features is not None:
        del data.x
    torch.save(data, tmp_path / "graph.pt")
    settings = {"epochs": 1, "hidden": 8}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = train(
            data, "gat", settings=settings, read_options=options, progress=False
        )
        expected = model.predict_proba(data, options)
        for graph in (data, tmp_path / "graph.pt"):
            assert torch.equal(model.predict_proba(graph), expected)


def test_edge_columns_of_training_are_needed_and_others_are_not_used(
    write_table: WriteTable, tmp_path: Path
) -> None:
    recipe = write_recipe(tmp_path / "recipe.yaml")
    plain, weighted = write_table("plain"), write_table("weighted")
    edges = weighted / "edges.csv"
    header, *pairs = edges.read_text().splitlines()
    lines = [f"{pair},{number % 3}" for number, pair in enumerate(pairs)]
    edges.write_text("\n".join([f"{header},strength", *lines]) + "\n")
    given = {"recipe": recipe, "device": "cpu", "progress": False}
    options = ReadOptions(edge_features=("strength",))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with_edges = train(weighted, "gat", read_options=options, **given)
        without = train(plain, "gat", **given)
    read = with_edges.read_graph(weighted)
    assert read.edge_feature_names == ("strength",)
    with pytest.raises(UserError, match="--edge-features comes from the model, which"):
        with_edges.read_graph(plain)
    bare = as_dataset(plain)
    with pytest.raises(UserError, match=r"the edge features strength, but .* none"):
        with_edges.read_graph(bare)
    read = without.read_graph(weighted, options)
    assert any("trained without" in note for note in read.notes)


def test_a_label_that_the_graph_lacks_is_refused_where_the_user_names_it(
    model: TrainedModel, write_table: WriteTable
) -> None:
    labelled, unlabelled = write_table("a"), write_table("b", labelled=False)
    for graph in (labelled, unlabelled):
        with pytest.raises(UserError, match="--label names 'nope'"):
            model.read_graph(graph, ReadOptions(label="nope"))
    assert model.read_graph(labelled, ReadOptions(label="label")).name == "a"
    # Training had labels; a graph to classify needs none.
    assert model.read_graph(unlabelled).name == "b"


def test_a_split_column_that_the_graph_lacks_is_refused_where_the_user_names_it(
    model: TrainedModel, write_table: WriteTable
) -> None:
    graph = write_table("a", order=[*NAMES])
    with pytest.raises(UserError, match="--split-column names 'nope'"):
        model.read_graph(graph, ReadOptions(split_column="nope"))
    lines = (graph / "nodes.csv").read_text().splitlines()
    lines = [f"{lines[0]},part", *(f"{line},train" for line in lines[1:])]
    (graph / "nodes.csv").write_text("\n".join(lines))
    assert model.read_graph(graph, ReadOptions(split_column="Part")).name == "a"


def test_other_columns_are_named_before_what_is_in_them(
    model: TrainedModel, write_table: WriteTable
) -> None:
    graph = write_table("a", names={"age": "tissue"})
    table = graph / "nodes.csv"
    lines = table.read_text().splitlines()
    lines = [f"{lines[0]},organ", *(f"{line},liver" for line in lines[1:])]
    table.write_text("\n".join(lines))
    with pytest.raises(
        UserError, match=r"a lacks age and has tissue, organ"
    ) as refused:
        model.read_graph(graph)
    assert "liver" not in str(refused.value)
    # With the same columns, it is the value that is wrong.
    same = write_table("b")
    text = (same / "nodes.csv").read_text()
    (same / "nodes.csv").write_text(text.replace("n0,", "n0,old,", 1))
    with pytest.raises(UserError, match="row 2 has"):
        model.read_graph(same)


@pytest.mark.parametrize("header", ["colour", "COLOUR"])
def test_words_and_gaps_that_training_did_not_have_are_named_as_in_the_file(
    tmp_path: Path, header: str
) -> None:
    def write(name: str, header: str, words: str) -> Path:
        path = tmp_path / name
        path.mkdir()
        rows = [f"{n},{word},{n % 2}" for n, word in enumerate(words.split(","))]
        (path / "nodes.csv").write_text("\n".join([f"id,{header},label", *rows]))
        ends = "".join(f"{n},{(n + 1) % len(rows)}\n" for n in range(len(rows)))
        (path / "edges.csv").write_text("source,target\n" + ends)
        return path

    options = ReadOptions(one_hot=("colour",), fill="flag", directed=True)
    train_on = write("train", "colour", ",".join(["red", "red", "blue"] * 6))
    settings = {"read_options": options, "settings": {"epochs": 1}}
    model = train(train_on, "gcn", recipe="plain", progress=False, **settings)
    same = write("same", header, ",".join(["red", "red", "blue"] * 6))
    assert torch.equal(model.predict(same), model.predict(train_on))
    gap = write("gap", header, ",".join(["red", "", "blue"] * 5))
    with pytest.raises(UserError, match="colour has a gap, which no training node had"):
        model.predict(gap)
    black = write("black", header, ",".join(["red", "black", "blue"] * 5))
    with pytest.raises(UserError, match="colour holds 'black', which no training node"):
        model.predict(black)


def test_a_graph_without_edges_is_said(
    model: TrainedModel, write_table: WriteTable
) -> None:
    alone = write_table("alone")
    (alone / "edges.csv").write_text("source,target\n")
    notes = model.read_graph(alone).notes
    assert any("has no edges, so that each node is classified by" in n for n in notes)
