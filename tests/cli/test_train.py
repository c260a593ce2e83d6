"""`tempergat train` keeps a checkpoint, and `tempergat predict` uses it."""

import builtins
import csv
import json
import re
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from tests.cli.conftest import Command
from tests.support.processes import ProcessStarter
from tests.support.tiny_graph import write_graph, write_graph_of_splits, write_recipe

CHECKPOINT = Path("tempergat-out/graph-temp_gated-seed3/checkpoint.safetensors")


@pytest.fixture
def trained(command: Command, graph: Path, recipe: Path) -> Path:
    arguments = ("--method", "temp_gated", "--seed", 3, "--recipe", recipe)
    assert command("train", graph, *arguments).status == 0
    return CHECKPOINT


def test_a_run_prints_its_score_and_where_its_checkpoint_is(
    command: Command, graph: Path, recipe: Path
) -> None:
    ended = command(
        "train", graph, "--method", "temp_gated", "--seed", 3, "--recipe", recipe
    )
    assert ended.status == 0
    assert re.search(
        r"temp_gated on graph, seed 3: test accuracy \d+\.\d\d % at epoch \d of 8",
        ended.out,
    )
    assert re.search(r"temperatures: \d\.\d+, \d\.\d+", ended.out)
    assert f"checkpoint: {CHECKPOINT}" in ended.out
    assert CHECKPOINT.is_file()
    assert "epoch 8 of 8" in ended.err


def test_json_is_in_percent_and_equal_when_asked_again(
    command: Command, graph: Path, recipe: Path
) -> None:
    arguments = ("train", graph, "--method", "gat", "--recipe", recipe, "--json")
    first, again = (json.loads(command(*arguments).out) for _ in range(2))
    assert 1.0 < first["scores"]["best_val_accuracy"]["train"] <= 100.0
    assert first["status"] == "done"
    assert first | {"time_s": 0} == again | {"time_s": 0}


def test_another_run_does_not_take_over_a_folder(
    command: Command, graph: Path, recipe: Path
) -> None:
    arguments = ("train", graph, "--recipe", recipe, "--out", "here", "--method")
    assert command(*arguments, "gat").status == 0
    other = command(*arguments, "gatv2")
    assert other.status == 2
    assert "another run" in other.err.splitlines()[-1]
    assert command(*arguments, "gatv2", "--no-resume").status == 0


def test_a_run_that_diverges_exits_with_one(
    command: Command, graph: Path, tmp_path: Path
) -> None:
    recipe = write_recipe(tmp_path / "wild.yaml", learning_rate=1e30)
    ended = command("train", graph, "--method", "gat", "--recipe", recipe)
    assert ended.status == 1
    assert re.search(r"failed, the validation loss was \S+ at epoch \d", ended.out)


def test_a_run_that_exceeds_memory_ends_in_one_line_and_status_one(
    command: Command, graph: Path, tmp_path: Path
) -> None:
    # More than a process can address, so that no machine has it.
    recipe = write_recipe(tmp_path / "huge.yaml", hidden_channels=2**44)
    ended = command("train", graph, "--method", "gat", "--recipe", recipe, "--quiet")
    assert ended.status == 1
    assert ended.err.startswith("tempergat: cpu has too little memory to train one run")
    assert ended.err.count("\n") == 1


def test_a_stopped_run_continues_to_the_same_checkpoint(
    command: Command, starter: ProcessStarter, tmp_path: Path, graph: Path
) -> None:
    recipe = write_recipe(tmp_path / "long.yaml", epochs=120)
    arguments = ["train", str(graph), "--method", "gat", "--recipe", str(recipe)]
    printed = tmp_path / "output.txt"
    stopped = [*arguments, "--out", "stopped"]
    status = starter.stop_at("epoch 60 ", signal.SIGTERM, stopped, printed)
    assert status == 128 + signal.SIGTERM
    assert f"tempergat {' '.join(stopped)}\n" in printed.read_text()
    assert command(*arguments, "--out", "stopped").status == 0
    assert command(*arguments, "--out", "whole").status == 0
    stopped, whole = (
        (Path(folder) / "checkpoint.safetensors").read_bytes()
        for folder in ("stopped", "whole")
    )
    assert stopped == whole


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--method", "gatt"], "did you mean gat"),
        (["--method", "gat", "--track", "paper"], "--track is 'paper'"),
        (["--method", "gat", "--out", "/dev/null"], "/dev/null"),
        ([], "--method"),
        (["--method", "gat", "--seed", "-1"], "--seed"),
    ],
)
def test_a_mistake_ends_in_words_and_status_two(
    command: Command, graph: Path, arguments: list[str], words: str
) -> None:
    ended = command("train", graph, *arguments)
    assert ended.status == 2
    assert words in ended.err
    assert "Traceback" not in ended.err


def test_predictions_are_one_row_per_node(
    command: Command, trained: Path, graph: Path
) -> None:
    ended = command("predict", trained, graph, "--out", "labels.csv")
    assert ended.status == 0
    with open("labels.csv") as file:
        rows = list(csv.DictReader(file))
    assert [row["node"] for row in rows] == [str(node) for node in range(60)]
    assert {row["label"] for row in rows} <= {"0", "1"}
    assert f"wrote {Path('labels.csv')}" in ended.out
    counts = command.facts("predict", trained.parent, graph)
    assert sum(counts["per_class"].values()) == counts["nodes"] == 60


def test_predictions_carry_the_ids_of_the_nodes_from_a_table_read_once(
    command: Command, recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    names = [f"n{number}" for number in range(12)]
    nodes = "".join(f"{name},{i % 2},{i % 2}.5\n" for i, name in enumerate(names))
    (folder / "nodes.csv").write_text("id,label,height\n" + nodes)
    edges = "".join(f"{a},{b}\n" for a, b in zip(names, names[2:], strict=False))
    (folder / "edges.csv").write_text("source,target\n" + edges)
    arguments = ("--method", "gat", "--recipe", recipe, "--split", "50/25/25")
    trained = command("train", folder, *arguments, "--out", "run")
    assert trained.status == 0, trained.err
    opened: list[object] = []
    plain_open = open

    def counting_open(file: Any, *arguments: Any, **keywords: Any) -> Any:
        opened.append(file)
        return plain_open(file, *arguments, **keywords)

    with monkeypatch.context() as patch:
        patch.setattr(builtins, "open", counting_open)
        assert command("predict", "run", folder).status == 0
    assert opened.count(folder / "nodes.csv") == 1
    with open("labels.csv") as file:
        assert [row["node"] for row in csv.DictReader(file)] == names


@pytest.mark.parametrize("kind", ["folder", "npz", "pt"])
def test_a_graph_without_labels_is_classified_like_one_with_them(
    command: Command, trained: Path, graph: Path, tmp_path: Path, kind: str
) -> None:
    labelled = np.load(graph)
    x, ends = labelled["x"], labelled["edge_index"]
    bare = tmp_path / f"bare.{kind}"
    if kind == "npz":
        np.savez(bare, x=x, edge_index=ends)
    elif kind == "pt":
        data = Data(x=torch.from_numpy(x), edge_index=torch.from_numpy(ends))
        torch.save(data, bare)
    else:
        bare.mkdir()
        columns = ",".join(f"f{number}" for number in range(x.shape[1]))
        rows = [",".join(repr(float(value)) for value in row) for row in x]
        (bare / "nodes.csv").write_text("\n".join([columns, *rows]) + "\n")
        pairs = [f"{a},{b}" for a, b in ends.T]
        (bare / "edges.csv").write_text("\n".join(["source,target", *pairs]) + "\n")
    assert command("predict", trained, graph, "--out", "with.csv").status == 0
    ended = command("predict", trained, bare, "--out", "without.csv")
    assert ended.status == 0, ended.err
    assert Path("without.csv").read_text() == Path("with.csv").read_text()
    ended = command("train", bare, "--method", "gat")
    assert ended.status == 2
    assert "label" in ended.err or " y" in ended.err


def test_a_damaged_checkpoint_is_refused(
    command: Command, trained: Path, graph: Path
) -> None:
    content = bytearray(trained.read_bytes())
    content[-5] ^= 1
    trained.write_bytes(content)
    command.refuses("damaged", "predict", trained, graph)
    assert not Path("labels.csv").exists()


def test_the_error_for_another_file_does_not_advise_to_delete_it(
    command: Command, graph: Path
) -> None:
    ended = command("predict", graph, graph)
    assert ended.status == 2
    assert "not a checkpoint of tempergat" in ended.err
    assert "delete" not in ended.err


def test_a_failed_run_predicts_nothing(
    command: Command, graph: Path, tmp_path: Path
) -> None:
    recipe = write_recipe(tmp_path / "wild.yaml", learning_rate=1e30)
    command("train", graph, "--method", "gat", "--recipe", recipe, "--out", "failed")
    ended = command("predict", "failed", graph)
    assert ended.status == 2
    assert re.search(r"failed at epoch \d", ended.err)
    assert not Path("labels.csv").exists()


def test_labels_do_not_go_into_a_folder(
    command: Command, trained: Path, graph: Path
) -> None:
    command.refuses("it is a folder", "predict", trained, graph, "--out", ".")
    blocked = command("predict", trained, graph, "--out", graph / "labels.csv")
    assert blocked.status == 2
    assert "is a file; choose another folder" in blocked.err


def test_runs_on_other_splits_have_folders_of_their_own(
    command: Command, tmp_path: Path, recipe: Path
) -> None:
    graph = write_graph_of_splits(tmp_path / "splits.npz", 2)
    arguments = ("train", graph, "--method", "gcn", "--recipe", recipe, "--quiet")
    for split in ([], ["--split", 1], ["--split", "60/20/20", "--split-seed", 4]):
        assert command(*arguments, *split).status == 0
    assert {path.name for path in Path("tempergat-out").iterdir()} == {
        "splits-gcn-seed0",
        "splits-gcn-seed0-split1",
        "splits-gcn-seed0-split60-20-20-splitseed4",
    }
    other = command(*arguments, "--split", 1, "--out", "tempergat-out/splits-gcn-seed0")
    assert other.status == 2
    assert "its graph or split is another one" in other.err
    assert "--no-resume" in other.err


def test_a_graph_with_other_features_is_refused(
    command: Command, trained: Path, tmp_path: Path
) -> None:
    wide = write_graph(tmp_path / "wide.npz", x=np.ones((60, 9), np.float32))
    command.refuses("9 features", "predict", trained, wide)


def test_a_missing_checkpoint_is_refused(command: Command, graph: Path) -> None:
    command.refuses("gone", "predict", "gone", graph)


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "graph.npz", "--method", "gat", "--out", "graph.npz/run"],
        ["diagnose", "graph.npz", "--out", "graph.npz/run"],
    ],
)
def test_a_folder_that_cannot_be_made_is_refused_before_any_work(
    command: Command, graph: Path, recipe: Path, arguments: list[str]
) -> None:
    ended = command(*arguments, "--recipe", recipe)
    assert ended.status == 2
    assert ended.err.startswith("tempergat: cannot write to graph.npz/run")
    assert "choose another folder with --out" in ended.err
