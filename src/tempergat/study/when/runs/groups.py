"""The groups of runs that the plan asks for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby

from tempergat.study.when.graphs import grid
from tempergat.study.when.plan import RealGraph, WhenPlan
from tempergat.study.when.runs.rows import Case, Key, Row, Stage

NOT_SEARCHED = -1


@dataclass(frozen=True)
class Group:
    """Runs of one arm on one graph that are trained at once.

    They differ in their seeds, splits, learning rates and weight decays alone.

    Attributes:
        stage: What they are for.
        runs: The keys of the runs.
    """

    stage: Stage
    runs: tuple[Key, ...]


def generated_groups(plan: WhenPlan) -> list[Group]:
    """The groups on generated graphs, graph by graph."""
    return [
        Group("generated", tuple(_keys(name, backbone, arm, NOT_SEARCHED, runs)))
        for name in grid(plan.generated)
        for backbone in plan.backbones
        for arm in plan.arms
        for runs in [[(0, seed) for seed in plan.generated.seeds]]
    ]


def search_groups(plan: WhenPlan, graph: RealGraph, splits: int) -> list[Group]:
    """The groups of every arm's search on a real graph: one for each dropout.

    Args:
        plan: The plan.
        graph: The graph.
        splits: How many splits it has.
    """
    changes = plan.real.search.changes()
    runs = _on_splits(plan.real.search.seeds, splits)

    def dropout(setting: int) -> float:
        return changes[setting]["feature_dropout"]

    together = [
        list(settings)
        for _, settings in groupby(sorted(range(len(changes)), key=dropout), dropout)
    ]
    return [
        Group(
            "search",
            tuple(
                key
                for setting in settings
                for key in _keys(graph.name, backbone, arm, setting, runs)
            ),
        )
        for backbone in plan.backbones
        for arm in plan.arms
        for settings in together
    ]


def real_groups(
    plan: WhenPlan,
    graph: RealGraph,
    splits: int,
    chosen: Mapping[Case, int],
) -> list[Group]:
    """The groups of the runs on a real graph that are reported.

    Args:
        plan: The plan.
        graph: The graph.
        splits: How many splits it has.
        chosen: The number of the setting that the search chose, by graph, backbone and
            arm; arms without one are left out.
    """
    runs = _on_splits(plan.real.seeds, splits)
    return [
        Group("real", tuple(_keys(graph.name, backbone, arm, setting, runs)))
        for backbone in plan.backbones
        for arm in plan.arms
        if (setting := chosen.get((graph.name, backbone, arm))) is not None
    ]


def missing_groups(groups: Iterable[Group], done: Iterable[Row]) -> list[Group]:
    """The groups without the runs that have a row already; empty ones are left out."""
    keys = {row.key for row in done}
    left = [
        replace(group, runs=tuple(key for key in group.runs if key not in keys))
        for group in groups
    ]
    return [group for group in left if group.runs]


def _keys(
    graph: str,
    backbone: str,
    arm: str,
    setting: int,
    runs: Iterable[tuple[int, int]],
) -> Iterator[Key]:
    for split, seed in runs:
        yield Key(graph, backbone, arm, setting, split, seed)


def _on_splits(seeds: tuple[int, ...], splits: int) -> list[tuple[int, int]]:
    """The split and the seed of each run: all on one split, or one on each."""
    return [(number % splits, seed) for number, seed in enumerate(seeds)]
