"""`tempergat compare` gives the same table after a kill at any moment."""

import csv
import os
import random
import signal
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tempergat.comparison.storage.store import Store
from tempergat.training import Run
from tests.support.processes import ProcessStarter
from tests.support.tiny_graph import write_graph, write_recipe

METHODS = 12
SEEDS = 3


def _arguments(folder: Path, out: Path) -> list[str]:
    return [
        "compare",
        str(folder / "graph.npz"),
        *("--recipe", str(folder / "recipe.yaml")),
        *("--runs", str(SEEDS)),
        *("--out", str(out)),
        *("--device", "cpu"),
    ]


def _runs(out: Path) -> list[Run]:
    with Store(out / "store.sqlite") as store:
        return [replace(run, time_s=0.0) for run in store.runs()]


def _tables(out: Path) -> tuple[str, str, list[dict[str, str]]]:
    rows = list(csv.DictReader((out / "graph.csv").read_text().splitlines()))
    for row in rows:
        del row["time_s"]
    return (out / "graph.md").read_text(), (out / "graph.tex").read_text(), rows


def _sweep_with_kills(
    starter: ProcessStarter,
    folder: Path,
    out: Path,
    kills: int,
    generator: random.Random,
) -> int:
    """Start the command again and again until it ends; count the kills that hit."""
    arguments = _arguments(folder, out)
    hits = 0
    while True:
        process = starter.start(arguments, folder / "output.txt")
        if hits < kills:
            time.sleep(generator.uniform(0.0, 0.8))
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        status = starter.wait()
        if status == 0:
            return hits
        assert status == -signal.SIGKILL, (folder / "output.txt").read_text()
        hits += 1


def _assert_kills_change_nothing(
    starter: ProcessStarter, folder: Path, kills: int
) -> None:
    write_graph(folder / "graph.npz")
    write_recipe(folder / "recipe.yaml", epochs=12)
    whole = folder / "whole"
    assert _sweep_with_kills(starter, folder, whole, 0, random.Random()) == 0
    assert len(_runs(whole)) == METHODS * SEEDS
    generator = random.Random(7)
    hits = 0
    attempt = 0
    while hits < kills:
        out = folder / f"killed-{attempt}"
        hits += _sweep_with_kills(starter, folder, out, kills - hits, generator)
        assert _runs(out) == _runs(whole)
        assert _tables(out) == _tables(whole)
        attempt += 1


def test_three_kills_change_nothing_in_the_table(
    starter: ProcessStarter, tmp_path: Path
) -> None:
    _assert_kills_change_nothing(starter, tmp_path, 3)


@pytest.mark.slow
def test_sixty_kills_change_nothing_in_the_table(
    starter: ProcessStarter, tmp_path: Path
) -> None:
    _assert_kills_change_nothing(starter, tmp_path, 60)
