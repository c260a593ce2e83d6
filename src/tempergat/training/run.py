"""Training of all seeds of one method at once, from dataset to finished runs."""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import torch_geometric

import tempergat
from tempergat.data import Dataset
from tempergat.training.evaluate import Evaluation
from tempergat.training.hardware.capture import EPOCHS_TO_CAPTURE
from tempergat.training.hardware.devices import device_name
from tempergat.training.hardware.memory import explain_out_of_memory
from tempergat.training.loop import COLUMNS, EpochLoop, chosen_epochs
from tempergat.training.preparation import Preparation
from tempergat.training.record import Run, Scores, numerics_of
from tempergat.training.recording.curves import thinned_curves
from tempergat.training.recording.gate_counts import count_gates
from tempergat.training.recording.moments import Moments, layer_records
from tempergat.training.seeds import SeedGroup
from tempergat.training.settings.config import RunConfig
from tempergat.training.starting import one_at_a_time, start_training
from tempergat.training.task import SPLITS
from tempergat.training.user_methods.user_code import BuildModule

# Where the temperatures and mean gates of a run are recorded, besides its last epoch.
_EPOCHS_RECORDED = (10, 25, 50, 100, 200, 300, 400, 600, 800)


def train_group(
    dataset: Dataset,
    config: RunConfig,
    seeds: Sequence[int],
    device: torch.device,
    on_epoch: Callable[[int], None] | None = None,
    build: BuildModule | None = None,
    preparation: Preparation | None = None,
) -> list[Run]:
    """Trains all seeds of one method.

    Full-batch, seeds of a built-in method are trained at once and those of a user's
    own module one after the other; so are all seeds in sampled training.

    Args:
        dataset: The graph.
        config: The settings.
        seeds: The seeds, one run each.
        device: Where to train.
        on_epoch: Called with each epoch's number, from 1.
        build: Builds a user's own module from the numbers of features and classes;
            None for the built-in methods.
        preparation: What is done to features and model before; None for nothing.

    Returns:
        The runs in the order of the seeds.

    Raises:
        UserError: Nothing can be trained with these arguments.
        OutOfMemory: The device has too little memory for so many runs at once.
    """
    device = torch.device(device)
    if config.training == "sampled" and len(seeds) > 1:
        options = (device, on_epoch, build, preparation)
        one_by_one = (train_group(dataset, config, [s], *options) for s in seeds)
        return [run for runs in one_by_one for run in runs]
    start = time.perf_counter()
    memory = explain_out_of_memory(config, len(seeds), device)
    with memory, _precision(preparation, device):
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        with one_at_a_time:
            training = start_training(
                dataset, config, seeds, device, build=build, preparation=preparation
            )
            moments = _moments(training, preparation)
            if device.type == "cuda" and config.training == "full":
                # A moment before the capture is measured in its place.
                first = () if preparation is None else preparation.epochs
                training.run(until=min((EPOCHS_TO_CAPTURE, *first)), on_epoch=on_epoch)
        if moments is None:
            training.run(on_epoch=on_epoch)
            runs = finished_runs(training, dataset, start)
        else:
            moments.train(on_epoch)
            runs = moments.add_to(finished_runs(training, dataset, start))
    if preparation is None:
        return runs
    known: dict[str, Any] = {
        "condition": preparation.stored_condition,
        "matmul_precision": preparation.matmul_precision,
    }
    return [replace(run, **known) for run in runs]


def _moments(training: EpochLoop, preparation: Preparation | None) -> Moments | None:
    """What is recorded on the way; None for methods that learn no such values."""
    group = training.group
    if not isinstance(group, SeedGroup):
        return None
    if preparation is not None and (preparation.measure or preparation.epochs):
        return Moments(training, preparation.measure, preparation.epochs)
    if not group.has_learned_values:
        return None
    return Moments(training, None, _EPOCHS_RECORDED, rules=())


@contextmanager
def _precision(preparation: Preparation | None, device: torch.device) -> Iterator[None]:
    if preparation is None or device.type != "cuda":
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(preparation.matmul_precision)
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
