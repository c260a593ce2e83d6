"""`tempergat predict` writes the words of classes and says what it assumed."""

import builtins
import csv
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tempergat
from tempergat.training.single import inference
from tests.cli.conftest import Command
from tests.support.tiny_graph import write_recipe

WORDS = ("cat", "dog")


def write_folder(folder: Path, header: str = "id,label,height,weight") -> Path:
    """A ring of 24 nodes of two classes."""
    folder.mkdir()
    cells = {
        "id": lambda node: f"n{node}",
        "label": lambda node: WORDS[node % 2],
        "height": lambda node: f"{4 * (node % 2) - 2}",
        "weight": lambda node: f"{node / 24:.3f}",
    }
    rows = [
        ",".join(cells[name](node) for name in header.split(",")) for node in range(24)
    ]
    (folder / "nodes.csv").write_text("\n".join([header, *rows]) + "\n")
    edges = [f"n{a},n{(a + 2) % 24}\nn{(a + 2) % 24},n{a}" for a in range(24)]
    (folder / "edges.csv").write_text("\n".join(["source,target", *edges]) + "\n")
    return folder


@pytest.fixture
def trained(command: Command, tmp_path: Path) -> Path:
    """A checkpoint's folder, beside the folder of its graph."""
    graph = write_folder(tmp_path / "mine")
    recipe = write_recipe(tmp_path / "recipe.yaml", epochs=30, learning_rate=0.05)
    arguments = ("--method", "gat", "--recipe", recipe, "--split", "50/25/25")
    ended = command("train", graph, *arguments, "--out", "run", "--quiet")
    assert ended.status == 0, ended.err
    return tmp_path / "run"


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_classes_are_written_as_the_words_of_the_training_table(
    command: Command, trained: Path
) -> None:
    ended = command("predict", trained, "mine")
    assert ended.status == 0, ended.err
    rows = rows_of(Path("labels.csv").read_text())
    assert list(rows[0]) == ["node", "label"]
    assert [row["node"] for row in rows] == [f"n{node}" for node in range(24)]
    assert {row["label"] for row in rows} <= set(WORDS)
    right = sum(row["label"] == WORDS[n % 2] for n, row in enumerate(rows))
    assert right > 20
    assert "of class cat" in ended.out
    facts = command.facts("predict", trained, "mine")
    assert set(facts["per_class"]) <= set(WORDS)
    assert sum(facts["per_class"].values()) == 24
    assert isinstance(facts["notes"], list)


def test_the_table_of_the_nodes_is_read_once(
    command: Command, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[object] = []
    plain_open = open

    def counting_open(file: Any, *arguments: Any, **keywords: Any) -> Any:
        opened.append(file)
        return plain_open(file, *arguments, **keywords)

    with monkeypatch.context() as patch:
        patch.setattr(builtins, "open", counting_open)
        assert command("predict", trained, tmp_path / "mine").status == 0
    assert opened.count(tmp_path / "mine" / "nodes.csv") == 1


def test_names_that_a_spreadsheet_would_compute_are_noted_and_kept(
    command: Command, trained: Path
) -> None:
    assert "formula" not in command("predict", trained, "mine").err
    for file in (Path("mine/nodes.csv"), Path("mine/edges.csv")):
        text = re.sub(r"\bn1\b", "=1+1", file.read_text())
        file.write_text(re.sub(r"\bn2\b", "-2", text))
    ended = command("predict", trained, "mine")
    assert "note: 1 names of nodes or classes begin like a formula" in ended.err
    names = [row["node"] for row in rows_of(Path("labels.csv").read_text())]
    assert names[1:3] == ["=1+1", "-2"]


def test_probabilities_are_one_column_per_class(
    command: Command, trained: Path
) -> None:
    assert command("predict", trained, "mine", "--probabilities").status == 0
    rows = rows_of(Path("labels.csv").read_text())
    assert list(rows[0]) == ["node", "label", "probability_cat", "probability_dog"]
    for row in rows:
        shares = {word: float(row[f"probability_{word}"]) for word in WORDS}
        assert sum(shares.values()) == pytest.approx(1.0, abs=1e-5)
        assert shares[row["label"]] == max(shares.values())


def test_standard_output_holds_the_table_alone(command: Command, trained: Path) -> None:
    assert command("predict", trained, "mine").status == 0
    expected = Path("labels.csv").read_text()
    ended = command("predict", trained, "mine", "--out", "-")
    assert ended.status == 0
    assert ended.out == expected
    assert "24 nodes" in ended.err
    assert not Path("-").exists()
    refused = command("predict", trained, "mine", "--out", "-", "--json")
    assert refused.status == 2
    assert "both write to standard output" in refused.err


def test_columns_are_matched_by_name(
    command: Command, trained: Path, tmp_path: Path
) -> None:
    assert command("predict", trained, "mine").status == 0
    expected = Path("labels.csv").read_text()
    write_folder(tmp_path / "turned", "weight,height,id")
    ended = command("predict", trained, "turned")
    assert ended.status == 0, ended.err
    assert Path("labels.csv").read_text() == expected
    assert "edges are followed both ways" in ended.err
    nodes = tmp_path / "turned" / "nodes.csv"
    nodes.write_text(nodes.read_text().replace("height", "iq"))
    refused = command("predict", trained, "turned")
    assert refused.status == 2
    assert "turned lacks height and has iq, which the model" in refused.err


def test_options_about_columns_are_refused_for_a_graph_of_arrays(
    command: Command, trained: Path, tmp_path: Path
) -> None:
    ring = np.stack([np.arange(24), (np.arange(24) + 2) % 24])
    np.savez(tmp_path / "new.npz", x=np.zeros((24, 2), "float32"), edge_index=ring)
    assert command("predict", trained, "new.npz").status == 0
    ended = command("predict", trained, "new.npz", "--features", "height,weight")
    assert ended.status == 2
    assert "--features is about the columns of tables, but new.npz holds" in ended.err
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize("label", ["", ",label"])
def test_a_typed_folder_is_refused_by_a_model_of_one_type(
    command: Command, trained: Path, tmp_path: Path, label: str
) -> None:
    folder = tmp_path / "typed"
    folder.mkdir()
    (folder / "nodes_cat.csv").write_text(f"id,height{label}\na,1{label and ',cat'}\n")
    (folder / "edges_cat__cat.csv").write_text("source,target\na,a\n")
    ended = command("predict", trained, "typed")
    assert ended.status == 2
    assert "typed has tables of node types, but the model was trained on" in ended.err
    assert "give a folder with nodes.csv and edges.csv" in ended.err


def test_the_last_hidden_features_are_written_beside_the_classes(
    command: Command, trained: Path
) -> None:
    ended = command("predict", trained, "mine", "--embeddings", "hidden.npy")
    assert ended.status == 0, ended.err
    assert "wrote labels.csv and hidden.npy" in ended.out
    hidden = np.load("hidden.npy")
    assert command("predict", trained, "mine", "--embeddings", "h.csv").status == 0
    rows = rows_of(Path("h.csv").read_text())
    assert [row.pop("node") for row in rows] == [f"n{node}" for node in range(24)]
    np.testing.assert_allclose([list(map(float, r.values())) for r in rows], hidden)
    model = tempergat.load_model(trained)
    last = model.module.convs[-1]
    graph = model.read_graph("mine")
    edge_index = graph.data.edge_index
    scores = last(torch.from_numpy(hidden), edge_index).argmax(dim=-1)
    assert scores.tolist() == model.predict("mine").tolist()
    # Large graphs and models of sampled training go layer by layer, in chunks.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inference, "_MOST_NODES_AT_ONCE", 3)
        np.testing.assert_allclose(model.embed("mine"), hidden, rtol=1e-5, atol=1e-6)


def test_embeddings_go_to_a_file_of_a_known_kind(
    command: Command, trained: Path
) -> None:
    ended = command("predict", trained, "mine", "--embeddings", "hidden.pt")
    assert ended.status == 2
    assert "give a file that ends in .npy or .csv" in ended.err
    assert not Path("labels.csv").exists()
