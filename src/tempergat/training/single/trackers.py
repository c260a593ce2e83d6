"""Sending a run's curves to TensorBoard or Weights & Biases while it trains."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from tempergat.base import UserError


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
