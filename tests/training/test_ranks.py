"""Processes that torchrun starts train one run together."""

import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
import yaml

from tempergat.base import UserError
from tempergat.training import CHECKPOINT_NAME
from tempergat.training.exchange import GraphPart
from tempergat.training.graphs.sampled import sampled_graph
from tempergat.training.ranks import Ranks, joined_ranks
from tempergat.training.tasks import node_classes
from tests.support.interpreted import environment_of_programs
from tests.support.run_settings import config, small_graph
from tests.support.tiny_graph import write_graph, write_recipe

SCRIPT = Path(__file__).parents[1] / "support" / "ranked_run.py"
FULL = SCRIPT.with_name("ranked_full_run.py")


def torchrun(
    *arguments: str, restarts: int = 0, processes: int = 2
) -> "subprocess.CompletedProcess[str]":
    """Two processes, or more, on the loopback device."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    start = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node"]
    where = [str(processes), "--master-addr", "127.0.0.1", "--master-port", str(port)]
    return subprocess.run(
        [*start, *where, "--max-restarts", str(restarts), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=300.0,
        env=environment_of_programs() | {"GLOO_SOCKET_IFNAME": "lo"},
    )


def sampled_recipe(path: Path, **changes: Any) -> Path:
    """No dropout, no penalty and all neighbours: nothing is random but the order."""
    write_recipe(path, epochs=3, feature_dropout=0.0)
    recipe = yaml.safe_load(path.read_text())
    recipe["training"] = "sampled"
    recipe["attention"] |= {"attention_dropout": 0.0, "gate_penalty": 0.0}
    for block in ("attention", "gcn"):
        recipe[block] |= {"fanout": [-1, -1], "batch_size": 14, **changes}
    path.write_text(yaml.safe_dump(recipe))
    return path


def full_recipe(path: Path, **changes: Any) -> Path:
    """As `sampled_recipe`, on all nodes at once and with the penalty."""
    write_recipe(path, epochs=3, feature_dropout=0.0)
    recipe = yaml.safe_load(path.read_text())
    recipe["attention"] |= {"attention_dropout": 0.0, "gate_penalty": 0.1}
    path.write_text(yaml.safe_dump(recipe))
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("write", "method"),
    # 43 training nodes: the last batch has one, and a process has none of it.
    [(sampled_recipe, "temp_gated"), (full_recipe, "gated_temp_v2")],
    ids=["on batches", "all nodes, gates before the attention"],
)
def test_two_processes_follow_the_losses_of_one(
    tmp_path: Path, write: Callable[[Path], Path], method: str
) -> None:
    graph = write_graph(tmp_path / "graph.npz", n=71)
    recipe = write(tmp_path / "recipe.yaml")
    command = ["-m", "tempergat", "train", str(graph), "--recipe", str(recipe)]
    command += ["--device", "cpu", "--method", method, "--out"]
    alone = subprocess.run(
        [sys.executable, *command, str(tmp_path / "one")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert alone.returncode == 0, alone.stderr
    assert "train/validation/test 43/" in alone.stderr
    together = torchrun(*command, str(tmp_path / "two"))
    assert together.returncode == 0, together.stderr
    assert together.stdout.replace("two/", "one/") == alone.stdout
    assert together.stderr.count("epoch 3 of 3") == 1
    one, two = (
        safetensors.torch.load_file(tmp_path / folder / CHECKPOINT_NAME)
        for folder in ("one", "two")
    )
    assert torch.isfinite(one["history"]).all()
    assert one.keys() == two.keys()
    for name, value in one.items():
        # Full training keeps the moments of a stack of runs.
        ours = two[name].view_as(value)
        torch.testing.assert_close(ours, value, rtol=1e-4, atol=1e-6, msg=name)


@pytest.mark.slow
def test_two_processes_follow_one_with_the_default_recipe() -> None:
    ended = torchrun(str(FULL))
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("the same") == 2


@pytest.mark.slow
def test_a_killed_process_is_restarted_and_the_weights_are_the_same_bytes(
    tmp_path: Path,
) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    ended = torchrun(str(SCRIPT), str(whole), str(killed), restarts=1)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("finished after restart 1") == 2
    first, second = ((d / CHECKPOINT_NAME).read_bytes() for d in (whole, killed))
    assert first == second


@pytest.mark.slow
def test_a_lost_process_is_one_line_that_says_how_to_go_on(tmp_path: Path) -> None:
    graph, script = write_graph(tmp_path / "graph.npz"), tmp_path / "script.py"
    script.write_text(
        """
import os, signal
from tempergat.cli import main
from tempergat.training.exchange import Exchange

def backward(self, *arguments, step=Exchange.backward):
    if os.environ["RANK"] == "2":
        os.kill(os.getpid(), signal.SIGKILL)
    return step(self, *arguments)

Exchange.backward = backward
main()
"""
    )
    command = [str(script), "train", str(graph), "--quiet", "--device", "cpu"]
    command += ["--method", "gat", "--out", str(tmp_path / "run")]
    ended = torchrun(*command, processes=3)
    assert ended.returncode == 1
    # What torchrun itself says begins with the letter of a level, or is its traceback.
    own, _, _ = ended.stderr.partition("Traceback")
    said = [line for line in own.splitlines() if line[:1] not in ("W", "E", "")]
    assert len(said) == 1, own
    # torchrun may end the others before they notice.
    lost = "another process of this run is lost"
    again = "the same command goes on from the last checkpoint"
    assert said[0].startswith("Stopped; ") or (lost in said[0] and again in said[0])


def test_a_batch_that_cannot_be_divided_evenly_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _under_torchrun(monkeypatch, processes=4)
    settings = config(training="sampled", fanout=(5, 5), batch_size=10)
    with (
        pytest.raises(UserError, match="over 4 processes; give 8 or 12"),
        joined_ranks(settings, torch.device("cpu")),
    ):
        pass


@pytest.mark.parametrize(
    ("changes", "processes", "message"),
    [
        ({"method": "gcn"}, 2, "train gcn only on sampled batches; give --training"),
        ({"norm": "layer"}, 2, "the norm layer needs the rows of all processes"),
        ({}, 1000, "fewer than the 1000 processes; start fewer"),
    ],
)
def test_full_batches_that_cannot_be_divided_are_refused(
    changes: dict[str, str], processes: int, message: str
) -> None:
    cpu, settings = torch.device("cpu"), config(**changes)
    ranks = Ranks(0, processes, 0, processes, cpu)
    graph = sampled_graph(small_graph(), settings, cpu)
    task = node_classes(small_graph(), settings, cpu)
    with pytest.raises(UserError, match=message):
        GraphPart(graph, settings, task, 0, ranks)


def test_outside_of_torchrun_there_is_one_process() -> None:
    with joined_ranks(config(), torch.device("cpu")) as ranks:
        assert ranks is None


def _under_torchrun(monkeypatch: pytest.MonkeyPatch, processes: int) -> None:
    values = {"TORCHELASTIC_RUN_ID": "test", "RANK": "0", "LOCAL_RANK": "0"}
    sizes = {"WORLD_SIZE": str(processes), "LOCAL_WORLD_SIZE": str(processes)}
    for name, value in (values | sizes).items():
        monkeypatch.setenv(name, value)
