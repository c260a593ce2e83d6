"""Trains what the files of the study lack, part by part."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from tempergat.base import FileLock
from tempergat.study.when.graphs import grid, real_graph
from tempergat.study.when.plan import RealGraph, WhenPlan
from tempergat.study.when.runs.groups import (
    Group,
    generated_groups,
    missing_groups,
    real_groups,
    search_groups,
)
from tempergat.study.when.runs.processes import processes_on, train_groups
from tempergat.study.when.runs.rows import (
    CSV_OF_STAGE,
    Row,
    Stage,
    read_rows,
    write_rows,
)
from tempergat.study.when.runs.search import chosen_settings

GENERATED = "generated"
TIME_NOTE = (
    "ten runs on a generated graph take about 6 s of one core; results/when/plan.yaml "
    "has an estimate of every part"
)
# Rows are written this often while groups are trained, and at the end.
_SAVE_EVERY_S = 5.0

OnRuns = Callable[[int, int], None]


def run_generated(
    plan: WhenPlan, results: Path, out: Path, device: torch.device, on_runs: OnRuns
) -> int:
    """Trains the runs on generated graphs that are missing.

    Args:
        plan: The plan.
        results: The folder of results.
        out: A folder for a lock.
        device: Where to train; beside a GPU, CPU cores train too.
        on_runs: Called with how many runs are done, and of how many.

    Returns:
        How many runs the file holds.
    """
    with FileLock(out / "when-generated.lock", "give another folder with --out"):
        groups = generated_groups(plan)
        return _complete(plan, "generated", groups, results, device, on_runs)


def run_real(
    plan: WhenPlan,
    graph: RealGraph,
    results: Path,
    out: Path,
    device: torch.device,
    on_runs: OnRuns,
) -> int:
    """Searches settings on a real graph and trains the runs that are reported.

    Args:
        plan: The plan.
        graph: The graph.
        results: The folder of results.
        out: A folder for a lock.
        device: Where to train; beside a GPU, CPU cores train too.
        on_runs: Called with how many runs are done, and of how many.

    Returns:
        How many runs of both files belong to the graph.

    Raises:
        UserError: The graph cannot be loaded.
    """
    splits = real_graph(plan.real, graph.name)
    with FileLock(out / "when-real.lock", "give another folder with --out"):
        groups = search_groups(plan, graph, len(splits))
        done = _complete(plan, "search", groups, results, device, on_runs)
        chosen = chosen_settings(plan, read_rows(results / CSV_OF_STAGE["search"]))
        groups = real_groups(plan, graph, len(splits), chosen)
        return done + _complete(plan, "real", groups, results, device, on_runs)


def counts(plan: WhenPlan, results: Path, graph: RealGraph | None) -> tuple[int, int]:
    """How many runs are needed and how many are there.

    Args:
        plan: The plan.
        results: The folder of results.
        graph: A real graph; None for all generated ones.
    """
    arms = len(plan.backbones) * len(plan.arms)
    if graph is None:
        needed = arms * len(grid(plan.generated)) * len(plan.generated.seeds)
        return needed, len(read_rows(results / CSV_OF_STAGE["generated"]))
    search = plan.real.search
    each = len(search.changes()) * len(search.seeds) + len(plan.real.seeds)
    files = (CSV_OF_STAGE["search"], CSV_OF_STAGE["real"])
    rows = [row for file in files for row in read_rows(results / file)]
    return arms * each, sum(row.key.graph == graph.name for row in rows)


def _complete(
    plan: WhenPlan,
    stage: Stage,
    groups: Sequence[Group],
    results: Path,
    device: torch.device,
    on_runs: OnRuns,
) -> int:
    """Trains the groups of a stage that have no rows; returns how many runs it has."""
    path = results / CSV_OF_STAGE[stage]
    rows = {row.key: row for row in read_rows(path)}
    asked = [key for group in groups for key in group.runs()]
    missing = missing_groups(groups, rows.values())
    saved = time.monotonic()

    def add(new: list[Row]) -> None:
        nonlocal saved
        rows.update({row.key: row for row in new})
        if time.monotonic() - saved >= _SAVE_EVERY_S:
            write_rows(path, rows.values())
            on_runs(sum(key in rows for key in asked), len(asked))
            saved = time.monotonic()

    try:
        train_groups(plan, missing, processes_on(device), add)
    finally:
        if missing:
            write_rows(path, rows.values())
    return len(asked)
