"""The checkpoint that a training writes, and from which it continues."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tempergat.base import UserError
from tempergat.training.loop import Loop
from tempergat.training.single import checkpoint
from tempergat.training.single.metadata import Metadata, read_metadata

# In the middle of an epoch, where an epoch has many steps.
_MOST_SECONDS_BETWEEN_CHECKPOINTS = 60.0
_START_AGAIN = (
    f"choose another folder with --out (out= in Python), or {checkpoint.TRAIN_AGAIN}"
)
# A checkpoint is continued only by a run that agrees in these.
_IDENTITY = ("config", "seed", "fingerprint", "in_channels", "num_classes")


class RunFile:
    """The checkpoint of a training in its folder.

    Args:
        folder: Where it is written; None to write nothing.
        metadata: The settings and the origin of the run.
        loop: The training of one run.
        start: `time.perf_counter()` at its start.

    Attributes:
        start: When the run would have started if all its stretches were one.
    """

    def __init__(
        self, folder: Path | None, metadata: Metadata, loop: Loop, start: float
    ) -> None:
        self._folder = folder
        self._metadata = metadata
        self._loop = loop
        self.start = self._last_write = start

    @property
    def is_finished(self) -> bool:
        """Whether all epochs are done, or the run has failed."""
        loop = self._loop
        return loop.epochs_done == loop.config.epochs or bool(loop.failed_epoch.all())

    def load_from(self, folder: Path) -> None:
        """Continues from the checkpoint in a folder, if there is one.

        Raises:
            UserError: It is damaged, or that of another run.
        """
        path = folder / checkpoint.CHECKPOINT_NAME
        if not path.exists():
            return
        tensors, values = checkpoint.read(path, _START_AGAIN)
        metadata = read_metadata(path, values)
        _refuse_another_run(path, metadata, self._metadata)
        _refuse_other_state(path, tensors, self._loop)
        checkpoint.require_progress(path, tensors, self._loop.config)
        self._loop.load_state(tensors)
        self.start -= metadata.time_s
        self._last_write = self.start

    def train(self, every: int, on_epoch: Callable[[int], None]) -> None:
        """Trains to the end with a checkpoint now and then, but none of the end.

        Args:
            every: Epochs between checkpoints.
            on_epoch: Called with each epoch's number, from 1.
        """
        loop = self._loop
        # An epoch on samples may take hours.
        loop.on_step = self._write_if_due
        if loop.epochs_done == 0:
            # A folder that cannot be written to is noticed before any work is done.
            self.write(time_s=time.perf_counter() - self.start)
        while not self.is_finished:
            following = loop.epochs_done // every + 1
            loop.run(until=following * every, on_epoch=on_epoch)
            if not self.is_finished:
                self.write(time_s=time.perf_counter() - self.start)

    def write(self, **values: Any) -> None:
        """Writes the checkpoint, with further values of its metadata."""
        if self._folder is not None:
            metadata = self._metadata.model_dump(mode="json") | values
            path = Path(self._folder) / checkpoint.CHECKPOINT_NAME
            checkpoint.write(path, self._loop.state(), metadata)
        self._last_write = time.perf_counter()

    def _write_if_due(self) -> None:
        now = time.perf_counter()
        if now - self._last_write >= _MOST_SECONDS_BETWEEN_CHECKPOINTS:
            self.write(time_s=now - self.start)


def _refuse_other_state(path: Path, saved: Mapping[str, Tensor], loop: Loop) -> None:
    wanted = loop.state()
    for name, parameter in loop.runs.parameters.items():
        # Adam has no moments of parameters that never had a gradient.
        if any(key.startswith(f"adam.{name}.") for key in saved):
            wanted[f"adam.{name}.step"] = torch.zeros(())
            wanted[f"adam.{name}.exp_avg"] = parameter
            wanted[f"adam.{name}.exp_avg_sq"] = parameter
    checkpoint.require_tensors(path, saved, wanted)
    others = sorted(set(saved) - set(wanted))
    if others:
        raise UserError(
            f"{path} holds {others[0]}, which this run does not have; {_START_AGAIN}"
        )


def _refuse_another_run(path: Path, saved: Metadata, wanted: Metadata) -> None:
    theirs, ours = (
        facts.model_dump(mode="json", include=set(_IDENTITY))
        for facts in (saved, wanted)
    )
    if saved.fingerprint != wanted.fingerprint and saved.dataset != wanted.dataset:
        # The settings of another graph are often others too.
        raise UserError(
            f"{path} belongs to another run: it was trained on {saved.dataset or '?'}, "
            f"not on {wanted.dataset}; {_START_AGAIN}"
        )
    for name in _IDENTITY:
        seen, value = theirs[name], ours[name]
        if seen == value:
            continue
        if name == "config":
            name = next(k for k in {**value, **seen} if seen.get(k) != value.get(k))
            seen, value = seen.get(name), value.get(name)
        difference = f"its {name} is {seen!r}, not {value!r}"
        if name == "fingerprint":
            difference = "its graph or split is another one"
        raise UserError(f"{path} belongs to another run: {difference}; {_START_AGAIN}")
