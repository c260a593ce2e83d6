"""The runner trains what results lack, survives a kill, and finds ours complete."""

import importlib
import re
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from studies import results, runner
from studies.__main__ import main, train
from studies.homogeneous import study as paper
from studies.results import read_whole_runs, runs_path
from studies.runner import Changes, Runner, Stage, Stages
from tempergat.base import UserError
from tempergat.comparison.storage.store import Store
from tempergat.data import Dataset, csbm
from tests.support.processes import ProcessStarter
from tests.support.run_settings import config

PROGRAM = """
import sys
from tests.studies.test_runner import run
run(sys.argv[1], say=lambda line: print(line, flush=True), epochs=100_000)
"""
# Of the paper's datasets those that have runs; of many graphs, some.
COMPLETE = {
    "calibration": ("cora", "citeseer", "pubmed"),
    "complementarity": ("cora", "citeseer", "pubmed"),
    "default": ("cora", "acm"),
    "heterogeneous": ("dblp", "imdb"),
    "homogeneous": ("cora", "citeseer", "pubmed"),
    "noise": ("cora", "citeseer", "pubmed"),
    "transformers": ("cora", "citeseer", "pubmed"),
    "when": ("cora", "acm"),
}


def toy(name: str) -> Dataset:
    return replace(csbm(n=40, a=6, b=2, d=4, seed=1), name=name)


def stages(say=print, epochs: int = 2) -> Stages:  # type: ignore[no-untyped-def]
    """A stage, and one with the better of two settings and `epochs` epochs."""
    rates = [config().with_changes(learning_rate=rate) for rate in (0.01, 0.02)]
    runs = yield Stage("toy/runs.csv", "toy", rates, range(3), toy)
    say(f"{len(runs)} runs")
    best = max(runs, key=lambda run: run.scores["best_val_accuracy"].val)
    chosen = config().with_changes(
        learning_rate=best.config["learning_rate"], epochs=epochs
    )
    yield Stage("toy/runs.csv", "toy", [chosen], range(10, 12), toy)


def run(folder: str | Path, **arguments: object) -> int:
    results.STUDIES = Path(folder)
    with Store(Path(folder) / "store.sqlite") as store:
        return Runner(store, torch.device("cpu")).run(stages(**arguments))  # type: ignore[arg-type]


def test_a_killed_study_continues_and_trains_nothing_twice(
    starter: ProcessStarter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "STUDIES", tmp_path)
    output = tmp_path / "output.txt"
    killed = starter.stop_at("6 runs", signal.SIGKILL, [str(tmp_path)], output, PROGRAM)
    assert killed == -signal.SIGKILL
    before = {run.time_s for run in read_whole_runs("toy/runs.csv")}
    assert run(tmp_path, say=lambda line: None) == 8
    runs = read_whole_runs("toy/runs.csv")
    assert len(runs) == 8
    assert before < {run.time_s for run in runs}
    assert all({"date", "commit"} <= set(run.versions) for run in runs)
    text = runs_path("toy/runs.csv").read_bytes()
    assert run(tmp_path, say=lambda line: None) == 8
    assert runs_path("toy/runs.csv").read_bytes() == text


def test_a_graph_that_a_study_does_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"when has no graph 'coar'; there are .*cora"):
        train("when", ["coar"], "cpu", tmp_path, Changes())


def test_the_papers_table_is_trained_with_what_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(paper, "load", toy)
    monkeypatch.delattr(runner, "write_runs")
    asked = "heterogeneous --datasets pokec --hidden 16 --batch-size 8 --set epochs=1"
    asked += f" --methods gat,temp_gated --runs 2 --out {tmp_path}"
    monkeypatch.setattr(sys, "argv", ["studies", *asked.split()])
    assert main() == 0
    printed = capsys.readouterr().out
    assert "# pokec with hidden=16, batch_size=8, epochs=1: test score" in printed
    assert re.search(
        r"\| temp_gated \| [\d.]+ ± [\d.]+ \| [\d.]+ ± .* 2 of 2 ", printed
    )
    with Store(tmp_path / "store.sqlite") as store:
        configs = [run.config for run in store.runs()]
    assert len(configs) == 4
    assert {config["hidden_channels"] for config in configs} == {16}


def test_a_study_with_one_plan_refuses_other_settings(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="when has one plan"):
        train("when", ["cora"], "cpu", tmp_path, Changes(runs=2))


@pytest.mark.parametrize("name", COMPLETE)
def test_our_results_are_what_the_plan_asks_for(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object) -> None:
        raise AssertionError(f"would train {arguments[1]}")

    monkeypatch.setattr(runner, "sweep", refuse)
    study = importlib.import_module(f"studies.{name}.study")
    for graph in COMPLETE[name]:
        with Store(tmp_path / "store.sqlite") as store:
            assert Runner(store, torch.device("cpu")).run(study.stages(graph)) > 0
