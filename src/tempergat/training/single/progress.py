"""What a run says while it trains: lines of text, TensorBoard, Weights & Biases."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from tempergat.base import UserError, duration

# How many lines a whole run prints.
_LINES = 10


class EpochLines:
    """Says which epoch is done, and how much time is left.

    Args:
        epochs: How many epochs the run has.
    """

    def __init__(self, epochs: int) -> None:
        self._epochs = epochs
        self._first: tuple[int, float] | None = None

    def line(self, epoch: int) -> str:
        """The line for an epoch that has just been done."""
        now = time.monotonic()
        # Epochs done before this process started say nothing about its speed.
        if self._first is None:
            self._first = epoch, now
        first, start = self._first
        left = ""
        if first < epoch < self._epochs:
            seconds = (now - start) / (epoch - first) * (self._epochs - epoch)
            left = f", about {duration(seconds)} left"
        return f"epoch {epoch} of {self._epochs}{left}"

    def is_due(self, epoch: int) -> bool:
        """Whether the line of an epoch is printed where earlier lines stay visible."""
        return epoch % max(self._epochs // _LINES, 1) == 0 or epoch == self._epochs

    def print_line(self, epoch: int) -> None:
        """Prints the line to standard error, if it is due."""
        line = self.line(epoch)
        if self.is_due(epoch):
            print(line, file=sys.stderr, flush=True)


class Tracker(Protocol):
    """Takes a run's numbers after every epoch."""

    def log(self, epoch: int, values: Mapping[str, float]) -> None:
        """Takes the numbers of one epoch, counted from 1."""

    def finish(self) -> None:
        """Called once after the last epoch."""


class TensorBoardTracker:
    """Writes a run's curves for TensorBoard.

    Args:
        folder: Where TensorBoard's files go.

    Raises:
        UserError: TensorBoard is not installed.
    """

    def __init__(self, folder: Path) -> None:
        _import("tensorboard")
        module = _import("torch.utils.tensorboard")
        self._writer = module.SummaryWriter(str(folder))

    def log(self, epoch: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, epoch)

    def finish(self) -> None:
        self._writer.close()


class WandbTracker:
    """Sends a run's curves to Weights & Biases.

    Args:
        project: The project there.
        settings: The settings of the run, shown beside its curves.
        folder: Where its local files go.

    Raises:
        UserError: wandb is not installed.
    """

    def __init__(
        self, project: str, settings: Mapping[str, Any], folder: Path | None = None
    ) -> None:
        self._run = _import("wandb").init(
            project=project,
            config=dict(settings),
            dir=None if folder is None else str(folder),
        )

    def log(self, epoch: int, values: Mapping[str, float]) -> None:
        self._run.log(dict(values), step=epoch)

    def finish(self) -> None:
        self._run.finish()


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.rpartition(".")[2]
        raise UserError(
            f"{package} is not installed; install it with `pip install "
            f"'tempergat[track]'`"
        ) from error
