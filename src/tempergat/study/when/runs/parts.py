"""Trains what the files of the study lack, part by part."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
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
    Case,
    Row,
    case_of,
    read_rows,
)
from tempergat.study.when.runs.search import chosen_settings
from tempergat.study.when.runs.tables import Tables

GENERATED = "generated"
TIME_NOTE = (
    "ten runs on a generated graph take about 6 s of one core; results/when/plan.yaml "
    "has an estimate of every part"
)
OnRuns = Callable[[int, int], None]


def run_generated(
    plan: WhenPlan, results: Path, out: Path, device: torch.device, on_runs: OnRuns
) -> int:
    """Trains the runs on generated graphs that are missing.

    Args:
        plan: The plan.
        results: The folder of results.
        out: A folder for a lock.
        device: Where to train.
        on_runs: Called with how many runs are done, and of how many.

    Returns:
        How many runs the file holds.
    """
    needed, _ = counts(plan, results, None)

    def show() -> None:
        on_runs(tables.count(None), needed)

    with FileLock(out / "when-generated.lock", "give another folder with --out"):
        tables = Tables(results, ["generated"], show)
        missing = missing_groups(generated_groups(plan), tables.rows("generated"))
        _train(plan, missing, tables, device, lambda group: [])
    return needed


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
        device: Where to train.
        on_runs: Called with how many runs are done, and of how many.

    Returns:
        How many runs of both files belong to the graph.

    Raises:
        UserError: The graph cannot be loaded.
    """
    splits = len(real_graph(plan.real, graph.name))
    needed, _ = counts(plan, results, graph)

    def show() -> None:
        on_runs(tables.count(graph.name), needed)

    def reported(cases: Collection[Case]) -> list[Group]:
        """The missing runs of arms whose search is complete."""
        rows = [row for row in tables.rows("search") if case_of(row.key) in cases]
        groups = real_groups(plan, graph, splits, chosen_settings(plan, rows))
        return missing_groups(groups, tables.rows("real"))

    def follow(group: Group) -> list[Group]:
        return reported([case_of(group.runs[0])]) if group.stage == "search" else []

    with FileLock(out / "when-real.lock", "give another folder with --out"):
        tables = Tables(results, ["search", "real"], show)
        searches = search_groups(plan, graph, splits)
        groups = reported({case_of(group.runs[0]) for group in searches})
        groups += missing_groups(searches, tables.rows("search"))
        _train(plan, groups, tables, device, follow)
    return needed


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


def _train(
    plan: WhenPlan,
    groups: Sequence[Group],
    tables: Tables,
    device: torch.device,
    follow: Callable[[Group], list[Group]],
) -> None:
    """Trains groups, and those that follow each of them; rows are kept if stopped."""

    def add(group: Group, rows: list[Row]) -> list[Group]:
        tables.add(group.stage, rows)
        return follow(group)

    try:
        train_groups(plan, groups, str(device), processes_on(device), add)
    finally:
        tables.save()
