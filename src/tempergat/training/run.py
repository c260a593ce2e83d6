"""Training of all seeds of one method at once, from dataset to finished runs."""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import torch_geometric
from torch import Tensor

import tempergat
from tempergat.data import Dataset
from tempergat.training.evaluate import Evaluation
from tempergat.training.hardware import (
    EPOCHS_TO_CAPTURE,
    device_name,
    explain_out_of_memory,
)
from tempergat.training.loop import COLUMNS, EpochLoop, chosen_epochs
from tempergat.training.record import (
    CLEAN,
    Condition,
    MatmulPrecision,
    Run,
    Scores,
    numerics_of,
)
from tempergat.training.recording import (
    Measure,
    Moments,
    count_gates,
    layer_records,
    thinned_curves,
)
from tempergat.training.seeds import ChangeModel, SeedGroup
from tempergat.training.settings import RunConfig
from tempergat.training.starting import one_at_a_time, start_training
from tempergat.training.task import SPLITS
from tempergat.training.user_methods import BuildModule

# Where the temperatures and mean gates of a run are recorded, besides its last epoch.
_EPOCHS_RECORDED = (10, 25, 50, 100, 200, 300, 400, 600, 800)


@dataclass(frozen=True)
class FeatureNoise:
    """Noise on the features of a group's runs: each seed runs under each condition.

    Attributes:
        conditions: The conditions; `CLEAN` is one of them where some runs have the
            graph's own features.
        features: Takes the settings, conditions and seeds and returns the features of
            each run, [seeds, conditions, nodes, in_channels].
        measure: Takes the group and its parameters and buffers at some epoch and
            returns for each run further attributes of its `LayerRecord`.
        matmul_precision: torch's precision of float32 matrix products on a GPU.
        epochs: Epochs at which the learned values are recorded, from 1, together with
            the epochs that the selection rules choose and the last one; without any,
            they are recorded at the epoch of the configured rule alone.
    """

    conditions: tuple[Condition, ...]
    features: Callable[[RunConfig, Sequence[Condition], Sequence[int]], Tensor]
    measure: Measure
    matmul_precision: MatmulPrecision = "highest"
    epochs: tuple[int, ...] = ()


def train_group(
    dataset: Dataset,
    config: RunConfig,
    seeds: Sequence[int],
    device: torch.device,
    on_epoch: Callable[[int], None] | None = None,
    build: BuildModule | None = None,
    noise: FeatureNoise | None = None,
    change_model: ChangeModel | None = None,
) -> list[Run]:
    """Trains all seeds of one method.

    Full-batch, seeds of a built-in method are trained at once and those of a user's
    own module one after the other; so are all seeds in sampled training.

    Args:
        dataset: The graph.
        config: The settings.
        seeds: The seeds, one run each; with noise, one run per condition.
        device: Where to train.
        on_epoch: Called with each epoch's number, from 1.
        build: Builds a user's own module from the numbers of features and classes;
            None for the built-in methods.
        noise: Noise on the features; None for the graph's own features.
        change_model: As in `SeedGroup`; for full-batch training of built-in methods.

    Returns:
        The runs in the order of the seeds; a seed's conditions follow each other.

    Raises:
        UserError: Nothing can be trained with these arguments.
        OutOfMemory: The device has too little memory for so many runs at once.
    """
    device = torch.device(device)
    if config.training == "sampled" and len(seeds) > 1:
        options = (device, on_epoch, build, noise)
        one_by_one = (train_group(dataset, config, [s], *options) for s in seeds)
        return [run for runs in one_by_one for run in runs]
    start = time.perf_counter()
    count = len(seeds) * (1 if noise is None else len(noise.conditions))
    with explain_out_of_memory(config, count, device), _precision(noise, device):
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        features = None
        if noise is not None:
            features = noise.features(config, noise.conditions, seeds)
        with one_at_a_time:
            training = start_training(
                dataset,
                config,
                seeds,
                device,
                build=build,
                features=features,
                change_model=change_model,
            )
            moments = _moments(training, noise)
            if device.type == "cuda" and config.training == "full":
                # A moment before the capture is measured in its place.
                first = (EPOCHS_TO_CAPTURE, *(() if noise is None else noise.epochs))
                training.run(until=min(first), on_epoch=on_epoch)
        if moments is None:
            training.run(on_epoch=on_epoch)
            return finished_runs(training, dataset, start)
        moments.train(on_epoch)
        runs = moments.add_to(finished_runs(training, dataset, start))
        return runs if noise is None else _with_conditions(runs, noise)


def _moments(training: EpochLoop, noise: FeatureNoise | None) -> Moments | None:
    """What is recorded on the way; None for methods that learn no such values."""
    if noise is not None:
        return Moments(training, noise.measure, noise.epochs)
    group = training.group
    if not isinstance(group, SeedGroup) or not group.has_learned_values:
        return None
    return Moments(training, None, _EPOCHS_RECORDED, rules=())


def _with_conditions(runs: Sequence[Run], noise: FeatureNoise) -> list[Run]:
    found = []
    for number, run in enumerate(runs):
        condition = noise.conditions[number % len(noise.conditions)]
        found.append(
            replace(
                run,
                condition=None if condition == CLEAN else condition,
                matmul_precision=noise.matmul_precision,
            )
        )
    return found


@contextmanager
def _precision(noise: FeatureNoise | None, device: torch.device) -> Iterator[None]:
    if noise is None or device.type != "cuda":
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(noise.matmul_precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def finished_runs(training: EpochLoop, dataset: Dataset, start: float) -> list[Run]:
    """The records of a finished training, one per run of its group.

    Args:
        training: All its epochs are done.
        dataset: The graph it was trained on.
        start: `time.perf_counter()` at its start.
    """
    group, config = training.group, training.config
    device = group.task.device
    # Waits for the device: before this, the epochs may be queued and not computed.
    history = training.history.cpu().numpy()
    time_s = (time.perf_counter() - start) / len(group.seeds)
    memory = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None
    shared: dict[str, Any] = {
        "dataset": dataset.name,
        "fingerprint": dataset.fingerprint,
        "method": config.method,
        "config": config.model_dump(mode="json"),
        "time_s": time_s,
        "memory_bytes": memory,
        "device": device_name(device),
        "numerics": numerics_of(device_name(device)),
        "versions": versions(),
        "parameter_count": sum(p.numel() for p in group.model.parameters()),
        "training_nodes": dataset.count("train"),
    }
    selected = layer_records(group.layer_values(training.best))
    last = layer_records(group.layer_values(training.current))
    evaluation = group.evaluation(training.best)
    gate_counts = count_gates(group, training.best)
    runs = []
    for slot, (seed, failed_epoch) in enumerate(
        zip(group.seeds, training.failed_epoch.tolist(), strict=True)
    ):
        outcome: dict[str, Any]
        if failed_epoch:
            outcome = {
                "status": "failed",
                "failed_epoch": failed_epoch,
                "reason": failure_reason(history[failed_epoch - 1, slot], failed_epoch),
            }
        else:
            outcome = {
                "scores": scores_by_rule(history[:, slot]),
                "selected": selected[slot],
                "last": last[slot],
                "curves": thinned_curves(history[:, slot]),
                "gate_counts": gate_counts[slot],
                **_further_scores(evaluation, slot, config, history[:, slot]),
            }
        runs.append(Run(seed=seed, **outcome, **shared))
    return runs


def _further_scores(
    evaluation: Evaluation, slot: int, config: RunConfig, history: np.ndarray
) -> dict[str, Any]:
    """A run's confusion matrix and further metrics, at the selected epoch."""
    epoch = chosen_epochs(history)[config.selection]
    return {
        "confusion": tuple(map(tuple, evaluation.confusion[slot].tolist())),
        "metrics": {
            name: {config.selection: Scores(epoch, *scores[slot].tolist())}
            for name, scores in evaluation.scores.items()
        },
    }


def scores_by_rule(history: np.ndarray) -> dict[str, Scores]:
    """Scores by selection rule; history is one run's, [epochs, columns]."""
    return {
        rule: Scores(
            epoch,
            *(float(history[epoch - 1, COLUMNS.index(split)]) for split in SPLITS),
        )
        for rule, epoch in chosen_epochs(history).items()
    }


def failure_reason(row: np.ndarray, epoch: int) -> str:
    """Why a run failed, from the row of its history at the failed epoch."""
    values = dict(zip(COLUMNS, row, strict=True))
    name, loss = "loss", values["loss"]
    if math.isfinite(loss):
        name, loss = "validation loss", values["val_loss"]
    return f"the {name} was {loss} at epoch {epoch}"


def versions() -> dict[str, str]:
    """Versions of the packages that take part in a run."""
    modules = (tempergat, torch, torch_geometric, np)
    return {"python": platform.python_version()} | {
        module.__name__: str(module.__version__) for module in modules
    }
