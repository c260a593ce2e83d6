"""Training of runs with different learning rates, weight decays and splits at once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from tempergat.data import Dataset
from tempergat.training.hardware import EPOCHS_TO_CAPTURE, explain_out_of_memory
from tempergat.training.loop import Training
from tempergat.training.mixed.group import MixedGroup
from tempergat.training.mixed.optimizer import AdamOfRuns
from tempergat.training.record import Run
from tempergat.training.run import finished_runs
from tempergat.training.seeds import ChangeModel, SeedGroup
from tempergat.training.settings import RunConfig
from tempergat.training.starting import one_at_a_time
from tempergat.training.task import targets_of, task_of

# The settings in which runs that are trained at once may differ.
_MAY_DIFFER = ("learning_rate", "weight_decay")


@dataclass(frozen=True)
class MixedRun:
    """One of several runs that are trained at once.

    Attributes:
        dataset: The graph, with the run's own split.
        config: Its settings.
        seed: Its seed.
    """

    dataset: Dataset
    config: RunConfig
    seed: int


class MixedTraining(Training):
    """Full-batch training where every run has its own learning rate and weight decay.

    Args:
        group: The models.
        configs: The settings of each run.
    """

    def __init__(self, group: SeedGroup, configs: Sequence[RunConfig]) -> None:
        super().__init__(group, configs[0])
        self.optimizer = AdamOfRuns(group.parameters, configs)


def start_mixed(
    runs: Sequence[MixedRun],
    device: torch.device,
    change_model: ChangeModel | None = None,
) -> MixedTraining:
    """The training of some runs before its first epoch; arguments as `train_mixed`.

    Raises:
        UserError: Nothing can be trained with these arguments.
        ValueError: The runs cannot be trained at once.
    """
    first = runs[0]
    _refuse_different(runs)
    task = task_of(first.dataset, first.config, device)
    seeds = [run.seed for run in runs]
    configs = [run.config for run in runs]
    if all(run.dataset is first.dataset for run in runs):
        group = SeedGroup(task, first.config, seeds, change_model=change_model)
        return MixedTraining(group, configs)
    targets = [targets_of(run.dataset, run.config) for run in runs]
    if task.metric != "accuracy" or task.class_weights is not None:
        raise ValueError(
            f"runs on different splits are trained with the metric accuracy, not "
            f"{task.metric}, and without class weights"
        )
    group = MixedGroup(task, first.config, seeds, targets, change_model)
    return MixedTraining(group, configs)


def train_mixed(
    runs: Sequence[MixedRun],
    device: torch.device,
    change_model: ChangeModel | None = None,
) -> list[Run]:
    """Trains runs of one method on one graph at once, full-batch.

    They may differ in their seeds, learning rates, weight decays and splits. Each is,
    but for rounding, the run that `train_group` would train; what it has learned is
    recorded at its selected and at its last epoch only.

    Args:
        runs: The runs. Their datasets are one graph with different splits.
        device: Where to train.
        change_model: As in `SeedGroup`.

    Returns:
        The runs in their order.

    Raises:
        UserError: Nothing can be trained with these arguments.
        ValueError: The runs cannot be trained at once.
        OutOfMemory: The device has too little memory for so many runs at once.
    """
    start = time.perf_counter()
    first = runs[0]
    with explain_out_of_memory(first.config, len(runs), device):
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        with one_at_a_time:
            training = start_mixed(runs, device, change_model)
            if device.type == "cuda":
                training.run(until=EPOCHS_TO_CAPTURE)
        training.run()
        found = finished_runs(training, first.dataset, start)
    return [
        replace(
            run,
            fingerprint=given.dataset.fingerprint,
            config=given.config.model_dump(mode="json"),
            training_nodes=given.dataset.count("train"),
        )
        for run, given in zip(found, runs, strict=True)
    ]


def _refuse_different(runs: Sequence[MixedRun]) -> None:
    """Refuses runs that cannot be trained at once.

    Raises:
        ValueError: They cannot.
    """
    first = runs[0]
    common = first.config.model_dump(exclude=set(_MAY_DIFFER))
    data = first.dataset.data
    for run in runs:
        if run.config.model_dump(exclude=set(_MAY_DIFFER)) != common:
            raise ValueError(
                f"runs that are trained at once differ in {' and '.join(_MAY_DIFFER)} "
                f"alone; got {first.config!r} and {run.config!r}"
            )
        other = run.dataset.data
        if other.x is not data.x or other.edge_index is not data.edge_index:
            raise ValueError(
                f"{first.dataset.name} and {run.dataset.name} are not one graph with "
                "two splits; runs that are trained at once share their features and "
                "edges"
            )
    config = first.config
    is_usual = config.optimizer == "adam" and config.schedule is None
    if config.training != "full" or config.source_hash is not None or not is_usual:
        raise ValueError(
            "runs with different learning rates or splits are trained at once "
            "full-batch, with a built-in method, adam and no schedule; got training "
            f"{config.training}, method {config.method}, optimizer {config.optimizer} "
            f"and schedule {config.schedule}"
        )
