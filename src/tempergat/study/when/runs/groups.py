"""The groups of runs that the plan asks for, and the training of one group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import torch

from tempergat.data import Dataset
from tempergat.study.when.arms import ARMS, neighbours_of
from tempergat.study.when.graphs import generate, grid, real_graph
from tempergat.study.when.plan import RealGraph, WhenPlan
from tempergat.study.when.runs.rows import Key, Row, Stage
from tempergat.training import Run, RunConfig, train_group

NOT_SEARCHED = -1


@dataclass(frozen=True)
class Group:
    """Runs that are trained at once: they differ in their seeds alone."""

    stage: Stage
    graph: str
    backbone: str
    arm: str
    setting: int
    split: int
    seeds: tuple[int, ...]

    def runs(self) -> list[Key]:
        """The keys of its runs."""
        return [
            Key(self.graph, self.backbone, self.arm, self.setting, self.split, seed)
            for seed in self.seeds
        ]


def generated_groups(plan: WhenPlan) -> list[Group]:
    """The groups on generated graphs, graph by graph."""
    return [
        Group("generated", name, backbone, arm, NOT_SEARCHED, 0, plan.generated.seeds)
        for name in grid(plan.generated)
        for backbone in plan.backbones
        for arm in plan.arms
    ]


def search_groups(plan: WhenPlan, graph: RealGraph, splits: int) -> list[Group]:
    """The groups of every arm's search on a real graph.

    Args:
        plan: The plan.
        graph: The graph.
        splits: How many splits it has.
    """
    return [
        Group("search", graph.name, backbone, arm, setting, split, seeds)
        for backbone in plan.backbones
        for arm in plan.arms
        for setting in range(len(plan.real.search.changes()))
        for split, seeds in _by_split(plan.real.search.seeds, splits)
    ]


def real_groups(
    plan: WhenPlan,
    graph: RealGraph,
    splits: int,
    chosen: Mapping[tuple[str, str, str], int],
) -> list[Group]:
    """The groups of the runs on a real graph that are reported.

    Args:
        plan: The plan.
        graph: The graph.
        splits: How many splits it has.
        chosen: The number of the setting that the search chose, by graph, backbone and
            arm; arms without one are left out.
    """
    return [
        Group("real", graph.name, backbone, arm, setting, split, seeds)
        for backbone in plan.backbones
        for arm in plan.arms
        if (setting := chosen.get((graph.name, backbone, arm))) is not None
        for split, seeds in _by_split(plan.real.seeds, splits)
    ]


def _by_split(
    seeds: tuple[int, ...], splits: int
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Seeds by the split that they are run on: all on one, or one on each."""
    if splits == 1:
        yield 0, seeds
        return
    for number, seed in enumerate(seeds):
        yield number % splits, (seed,)


def missing_groups(groups: Iterable[Group], rows: Iterable[Row]) -> list[Group]:
    """The groups that have a run without a row."""
    done = {row.key for row in rows}
    return [group for group in groups if not done.issuperset(group.runs())]


def train(plan: WhenPlan, group: Group, device_name: str) -> list[Row]:
    """Trains all runs of a group.

    Args:
        plan: The plan.
        group: The group.
        device_name: A device of torch.

    Raises:
        UserError: The graph cannot be loaded.
    """
    device = torch.device(device_name)
    dataset = _dataset(plan, group)
    config = config_of(plan, group)
    neighbours = neighbours_of(dataset, device)
    change = partial(ARMS[group.arm].change_model, neighbours=neighbours)
    runs = train_group(dataset, config, group.seeds, device, change_model=change)
    return [
        _row_of(key, run, config) for key, run in zip(group.runs(), runs, strict=True)
    ]


def config_of(plan: WhenPlan, group: Group) -> RunConfig:
    """The settings of a group's runs."""
    (backbone,) = (name for name in plan.backbones if name == group.backbone)
    arm = ARMS[group.arm]
    if group.setting == NOT_SEARCHED:
        return arm.config(plan.generated.config(), backbone)
    changes = plan.real.search.changes()[group.setting]
    return arm.config(plan.real.config().with_changes(**changes), backbone)


def _dataset(plan: WhenPlan, group: Group) -> Dataset:
    if group.stage == "generated":
        return generate(plan.generated, grid(plan.generated)[group.graph])
    return real_graph(plan.real, group.graph)[group.split]


def _row_of(key: Key, run: Run, config: RunConfig) -> Row:
    scores = run.scores[config.selection] if run.status == "done" else None
    assert run.parameter_count is not None
    return Row(
        key,
        None if scores is None else 100.0 * scores.val,
        None if scores is None else 100.0 * scores.test,
        None if scores is None else scores.epoch,
        run.parameter_count,
        run.selected.temperatures,
        run.selected.gate_means,
        run.device,
        run.time_s,
    )
