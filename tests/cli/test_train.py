"""`tempergat train` keeps a checkpoint, and `tempergat predict` uses it."""

import json
import re
import signal
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.support.processes import ProcessStarter
from tests.support.tiny_graph import write_graph_of_splits, write_recipe

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


def test_the_error_for_another_file_does_not_advise_to_delete_it(
    command: Command, graph: Path
) -> None:
    ended = command("predict", graph, graph)
    assert ended.status == 2
    assert "not a checkpoint of tempergat" in ended.err
    assert "delete" not in ended.err


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


def test_a_folder_that_cannot_be_made_is_refused_before_any_work(
    command: Command, graph: Path, recipe: Path
) -> None:
    arguments = ("train", graph, "--method", "gat", "--recipe", recipe)
    ended = command(*arguments, "--out", "graph.npz/run")
    assert ended.status == 2
    assert ended.err.startswith("tempergat: cannot write to graph.npz/run")
    assert "choose another folder with --out" in ended.err
