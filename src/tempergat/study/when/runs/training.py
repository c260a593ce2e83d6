"""The training of one group of runs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch

from tempergat.data import Dataset
from tempergat.study.when.arms import ARMS, neighbours_of
from tempergat.study.when.graphs import generate, grid, real_graph
from tempergat.study.when.plan import WhenPlan
from tempergat.study.when.runs.groups import NOT_SEARCHED, Group
from tempergat.study.when.runs.rows import Key, Row
from tempergat.training import (
    MixedRun,
    OutOfMemory,
    Run,
    RunConfig,
    free_memory,
    group_size,
    train_group,
    train_mixed,
)


def train(plan: WhenPlan, group: Group, device_name: str, share: int = 1) -> list[Row]:
    """Trains all runs of a group, as many at once as fit the memory.

    Args:
        plan: The plan.
        group: The group.
        device_name: A device of torch.
        share: How many processes use the memory of the device.

    Raises:
        UserError: The graph cannot be loaded.
        OutOfMemory: The device has too little memory for a single run.
    """
    device = torch.device(device_name)
    splits = _splits(plan, group)
    runs = [
        MixedRun(splits[key.split], config_of(plan, key), key.seed)
        for key in group.runs
    ]
    size = group_size(runs[0].dataset, runs[0].config, device)
    if device.type == "cuda":
        size = max(1, size // share)
    arm = ARMS[group.runs[0].arm]
    neighbours = neighbours_of(runs[0].dataset, device)
    change = partial(arm.change_model, neighbours=neighbours)
    found: list[Run] = []
    while len(found) < len(runs):
        some = runs[len(found) : len(found) + size]
        try:
            found += _train(some, device, change)
            continue
        except OutOfMemory:
            if len(some) == 1:
                raise
        # Other programs may use the device too.
        size = len(some) // 2
        free_memory(device)
    return [
        _row_of(key, run, given.config)
        for key, run, given in zip(group.runs, found, runs, strict=True)
    ]


def config_of(plan: WhenPlan, key: Key) -> RunConfig:
    """The settings of a run."""
    (backbone,) = (name for name in plan.backbones if name == key.backbone)
    arm = ARMS[key.arm]
    if key.setting == NOT_SEARCHED:
        return arm.config(plan.generated.config(), backbone)
    changes = plan.real.search.changes()[key.setting]
    return arm.config(plan.real.config().with_changes(**changes), backbone)


def _train(
    runs: Sequence[MixedRun], device: torch.device, change: partial[None]
) -> list[Run]:
    first = runs[0]
    alike = all(r.dataset is first.dataset and r.config == first.config for r in runs)
    if not alike:
        return train_mixed(runs, device, change)
    seeds = [run.seed for run in runs]
    return train_group(first.dataset, first.config, seeds, device, change_model=change)


def _splits(plan: WhenPlan, group: Group) -> dict[int, Dataset]:
    """The graph of a group with each of its splits, by number."""
    name = group.runs[0].graph
    if group.stage == "generated":
        return {0: generate(plan.generated, grid(plan.generated)[name])}
    return real_graph(plan.real, name)


def _row_of(key: Key, run: Run, config: RunConfig) -> Row:
    scores = run.scores[config.selection] if run.status == "done" else None
    assert run.parameter_count is not None
    return Row(
        key,
        # As in the file, from which a search that is continued chooses.
        None if scores is None else round(100.0 * scores.val, 4),
        None if scores is None else round(100.0 * scores.test, 4),
        None if scores is None else scores.epoch,
        run.parameter_count,
        run.selected.temperatures,
        run.selected.gate_means,
        run.device,
        run.time_s,
    )
