"""Training of all seeds of one method at once, from dataset to finished runs."""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import torch_geometric

import tempergat
from tempergat.data import Dataset
from tempergat.training.config import RunConfig
from tempergat.training.hardware import device_name, explain_out_of_memory
from tempergat.training.loop import COLUMNS, Training, chosen_epochs
from tempergat.training.record import LayerRecord, Run, Scores
from tempergat.training.seeds import LayerValues
from tempergat.training.task import SPLITS, task_of
from tempergat.training.user_modules import BuildModule, make_group


def train_group(
    dataset: Dataset,
    config: RunConfig,
    seeds: Sequence[int],
    device: torch.device,
    on_epoch: Callable[[int], None] | None = None,
    build: BuildModule | None = None,
) -> list[Run]:
    """Trains all seeds of one method, full-batch.

    Seeds of a built-in method are trained at once, those of a user's own module one
    after the other.

    Args:
        dataset: The graph, homogeneous.
        config: The settings.
        seeds: One run each.
        device: Where to train.
        on_epoch: Called with each epoch's number, from 1.
        build: Builds a user's own module from the numbers of features and classes;
            None for the built-in methods.

    Returns:
        One run per seed, in their order.

    Raises:
        UserError: Nothing can be trained with these arguments.
        OutOfMemory: The device has too little memory for so many seeds at once.
    """
    device = torch.device(device)
    start = time.perf_counter()
    with explain_out_of_memory(config, len(seeds), device):
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        task = task_of(dataset, config, device)
        group = make_group(task, config, seeds, build=build)
        training = Training(group, config)
        training.run(on_epoch=on_epoch)
        return finished_runs(training, dataset, start)


def finished_runs(training: Training, dataset: Dataset, start: float) -> list[Run]:
    """The records of a finished training, one per run of its group.

    Args:
        training: All its epochs are done.
        dataset: The graph it was trained on.
        start: `time.perf_counter()` at its start.
    """
    group, config = training.group, training.config
    device = group.task.device
    memory = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None
    shared: dict[str, Any] = {
        "dataset": dataset.name,
        "fingerprint": dataset.fingerprint,
        "method": config.method,
        "config": config.model_dump(mode="json"),
        "time_s": (time.perf_counter() - start) / len(group.seeds),
        "memory_bytes": memory,
        "device": device_name(device),
        "versions": versions(),
        "parameter_count": sum(p.numel() for p in group.model.parameters()),
    }
    selected = _layer_records(group.layer_values(training.best))
    last = _layer_records(group.layer_values(training.current))
    history = training.history.cpu().numpy()
    runs = []
    for slot, (seed, failed_epoch) in enumerate(
        zip(group.seeds, training.failed_epoch.tolist(), strict=True)
    ):
        outcome: dict[str, Any]
        if failed_epoch:
            outcome = {
                "status": "failed",
                "failed_epoch": failed_epoch,
                "reason": _failure(history[failed_epoch - 1, slot], failed_epoch),
            }
        else:
            outcome = {
                "scores": _scores(history[:, slot]),
                "selected": selected[slot],
                "last": last[slot],
            }
        runs.append(Run(seed=seed, **outcome, **shared))
    return runs


def _scores(history: np.ndarray) -> dict[str, Scores]:
    """Scores by selection rule; history is one run's, [epochs, columns]."""
    return {
        rule: Scores(
            epoch,
            *(float(history[epoch - 1, COLUMNS.index(split)]) for split in SPLITS),
        )
        for rule, epoch in chosen_epochs(history).items()
    }


def _failure(row: np.ndarray, epoch: int) -> str:
    """Why a run failed, from the row of its history at the failed epoch."""
    values = dict(zip(COLUMNS, row, strict=True))
    name, loss = "loss", values["loss"]
    if math.isfinite(loss):
        name, loss = "validation loss", values["val_loss"]
    return f"the {name} was {loss} at epoch {epoch}"


def _layer_records(values: LayerValues) -> list[LayerRecord]:
    """One record per run; a layer's value is its mean over heads."""
    return [
        LayerRecord(
            tuple(float(np.mean(value)) for value in temperatures),
            tuple(float(np.mean(value)) for value in gate_means),
        )
        for temperatures, gate_means in zip(
            values.temperatures.tolist(), values.gate_means.tolist(), strict=True
        )
    ]


def versions() -> dict[str, str]:
    """Versions of the packages that take part in a run."""
    modules = (tempergat, torch, torch_geometric, np)
    return {"python": platform.python_version()} | {
        module.__name__: str(module.__version__) for module in modules
    }
