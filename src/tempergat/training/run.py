"""All seeds of one method at once, from dataset to scores."""

from __future__ import annotations

import gc
import math
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy
import torch
import torch_geometric

import tempergat
from tempergat.base.errors import UserError
from tempergat.data import Dataset
from tempergat.training.config import RunConfig
from tempergat.training.loop import COLUMNS, Training, chosen_epochs
from tempergat.training.seeds import SeedGroup
from tempergat.training.task import SPLITS, task_of

LayerValue = float | list[float]

# The last where more is asked for than a size can count.
_OUT_OF_MEMORY_WORDS = (
    "can't allocate memory",
    "std::bad_alloc",
    "calculation overflowed",
)


class OutOfMemory(UserError):
    """Runs that a device has too little memory for, together."""

    # Not a mistake in what was asked: the command ends as with failed runs.
    exit_status = 1


@dataclass(frozen=True)
class RunResult:
    """What came of one run.

    Attributes:
        seed: The run's seed.
        status: ``done`` or ``failed``.
        failed_epoch: The epoch, from 1, whose loss was not a finite number.
        reason: Why it failed, in words.
        selected_epoch: The epoch chosen by the configured rule, from 1.
        scores: By selection rule, the score on each split, as a fraction; empty for
            a failed run.
        epochs: By selection rule, the chosen epoch.
        temperatures: One value per layer at the ``selected`` and the ``last`` epoch;
            no values for methods without temperature.
        gate_means: Likewise each layer's mean gate in evaluation.
        time_s: Wall time of the group, divided by its seeds.
        memory_bytes: Peak memory of the group on its device, where known.
        device: The device, in words.
        versions: Versions of what took part.
    """

    seed: int
    status: Literal["done", "failed"]
    failed_epoch: int | None = None
    reason: str | None = None
    selected_epoch: int | None = None
    scores: dict[str, dict[str, float]] = field(default_factory=dict)
    epochs: dict[str, int] = field(default_factory=dict)
    temperatures: dict[str, list[LayerValue]] = field(default_factory=dict)
    gate_means: dict[str, list[LayerValue]] = field(default_factory=dict)
    time_s: float = 0.0
    memory_bytes: int | None = None
    device: str = "cpu"
    versions: dict[str, str] = field(default_factory=dict)


def train_group(
    dataset: Dataset,
    config: RunConfig,
    seeds: Sequence[int],
    device: torch.device,
    on_epoch: Callable[[int], None] | None = None,
) -> list[RunResult]:
    """Trains all seeds of one method at once, full-batch.

    Args:
        dataset: The graph, homogeneous.
        config: The settings.
        seeds: One run each.
        device: Where to train.
        on_epoch: Called with each epoch's number, from 1.

    Returns:
        One result per seed, in their order.

    Raises:
        UserError: Nothing can be trained with these arguments.
        OutOfMemory: Not so many seeds at once.
    """
    device = torch.device(device)
    start = time.perf_counter()
    with memory_told(config, len(seeds), device):
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        group = SeedGroup(task_of(dataset, config, device), config, seeds)
        training = Training(group, config)
        training.run(on_epoch=on_epoch)
        return results_of(training, start)


def results_of(training: Training, start: float) -> list[RunResult]:
    """The results of a finished training, one per seed.

    Args:
        training: All its epochs are done.
        start: `time.perf_counter()` at its start.
    """
    group, config = training.group, training.config
    device = group.task.device
    selected = group.layer_values(training.best)
    last = group.layer_values(training.current)
    learned = {
        name: {
            "selected": getattr(selected, name).tolist(),
            "last": getattr(last, name).tolist(),
        }
        for name in ("temperatures", "gate_means")
    }
    history = training.history.cpu().numpy()
    failed_epochs = training.failed_epoch.tolist()
    memory = None
    if device.type == "cuda":
        memory = torch.cuda.max_memory_allocated(device)
    shared: dict[str, Any] = {
        "time_s": (time.perf_counter() - start) / len(group.seeds),
        "memory_bytes": memory,
        "device": device_in_words(device),
        "versions": versions(),
    }
    results = []
    for slot, (seed, failed_epoch) in enumerate(
        zip(group.seeds, failed_epochs, strict=True)
    ):
        if failed_epoch:
            row = dict(zip(COLUMNS, history[failed_epoch - 1, slot], strict=True))
            what, loss = "loss", row["loss"]
            if math.isfinite(loss):
                what, loss = "validation loss", row["val_loss"]
            reason = f"the {what} was {loss} at epoch {failed_epoch}"
            result = RunResult(seed, "failed", failed_epoch, reason, **shared)
            results.append(result)
            continue
        epochs = chosen_epochs(history[:, slot])
        scores = {
            rule: {
                split: float(history[epoch - 1, slot, COLUMNS.index(split)])
                for split in SPLITS
            }
            for rule, epoch in epochs.items()
        }
        results.append(
            RunResult(
                seed,
                "done",
                selected_epoch=epochs[config.selection],
                scores=scores,
                epochs=epochs,
                temperatures={k: v[slot] for k, v in learned["temperatures"].items()},
                gate_means={k: v[slot] for k, v in learned["gate_means"].items()},
                **shared,
            )
        )
    return results


@contextmanager
def memory_told(config: RunConfig, runs: int, device: torch.device) -> Iterator[None]:
    """Turns running out of memory into a sentence that says what to do.

    Raises:
        OutOfMemory: Memory ran out.
    """
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not _is_out_of_memory(error):
            raise
        what = f"one run of {config.method}"
        if runs > 1:
            what = f"{runs} runs of {config.method} at once"
        raise OutOfMemory(
            f"{device} has too little memory to train {what} with hidden_channels "
            f"{config.hidden_channels}; use a machine with more, or a --recipe with "
            "fewer hidden_channels"
        ) from error


def free_memory(device: torch.device) -> None:
    """Gives back what a training that failed has held.

    To be called past the except clause: the error holds on to its tensors.
    """
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def _is_out_of_memory(error: BaseException | None) -> bool:
    # While a step is recorded, the first error makes a second one.
    while error is not None:
        if isinstance(error, MemoryError | torch.OutOfMemoryError):
            return True
        if any(words in str(error) for words in _OUT_OF_MEMORY_WORDS):
            return True
        error = error.__context__
    return False


def device_in_words(device: torch.device) -> str:
    """The device's kind and, for GPUs, its name."""
    if device.type == "cuda":
        return f"cuda ({torch.cuda.get_device_name(device)})"
    return str(device)


def versions() -> dict[str, str]:
    """Versions of what takes part in a run."""
    modules = (tempergat, torch, torch_geometric, numpy)
    return {"python": platform.python_version()} | {
        module.__name__: str(module.__version__) for module in modules
    }
