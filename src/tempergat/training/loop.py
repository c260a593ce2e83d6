"""The training loop: epochs, each evaluated; full-batch, an epoch is one step.

Everything that a full-batch epoch reads or writes is a tensor on the device. No value
is read back before the end, so that a GPU never waits for the host.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from tempergat.training.evaluate import Evaluation
from tempergat.training.hardware.capture import replayed
from tempergat.training.optimizer import make_optimizer, set_learning_rate
from tempergat.training.seeds import LayerValues, SeedGroup, State
from tempergat.training.settings.config import RunConfig
from tempergat.training.task import SPLITS
from tempergat.training.user_methods.user_modules import ModuleGroup

# The columns of `Training.history`.
COLUMNS = ("loss", "val_loss", *SPLITS)


class Runs(Protocol):
    """The models of some runs; see `SeedGroup`."""

    can_be_captured: bool
    task: Any
    seeds: tuple[int, ...]
    model: Any
    parameters: State

    @property
    def state(self) -> State: ...

    def load_state(self, state: Mapping[str, Tensor]) -> None: ...

    def clip_gradients(self, most: float) -> None: ...

    def scores(self) -> tuple[Tensor, Tensor]: ...

    def evaluation(self, state: State) -> Evaluation: ...

    def layer_values(self, state: State) -> LayerValues: ...


class BestEpoch:
    """The weights of each run at its best epoch so far.

    Args:
        rule: The selection rule that calls an epoch the best.
        state: Parameters and buffers, [runs, ...] each.
        like: [runs], on the device of the runs.

    Attributes:
        rule: The selection rule.
        merit: How good that epoch was; the higher, the better, [runs].
        state: Parameters and buffers at that epoch.
    """

    def __init__(self, rule: str, state: State, like: Tensor) -> None:
        self.rule = rule
        self.merit = torch.full_like(like, -torch.inf, dtype=torch.float64)
        self.state: State = {k: v.detach().clone() for k, v in state.items()}

    def update(self, merit: Tensor, current: State, valid: Tensor) -> None:
        """Takes over the current weights of the runs whose epoch was the best.

        Args:
            merit: How good the epoch was, [runs].
            current: Parameters and buffers.
            valid: Whether a run has not failed, [runs].
        """
        # Strictly better, so that the first of several equal epochs is chosen.
        better = (merit > self.merit) & valid
        self.merit.copy_(torch.where(better, merit, self.merit))
        for name, value in current.items():
            mask = better.view(-1, *[1] * (value.dim() - 1))
            torch.where(mask, value, self.state[name], out=self.state[name])


class EpochLoop(ABC):
    """The training of some runs, epoch by epoch.

    A subclass says what an epoch is, in ``_one_epoch``.

    Args:
        group: The models.
        config: Settings of the runs.

    Attributes:
        epoch: How many epochs are done, 0-d.
        history: Training loss, validation loss and scores after each epoch,
            float64, [epochs, runs, columns].
        failed_epoch: For each run, the first epoch whose loss was not a finite number,
            or 0.
    """

    group: Runs

    def __init__(self, group: Runs, config: RunConfig) -> None:
        device, seeds = group.task.device, len(group.seeds)
        self.group = group
        self.config = config
        self.optimizer: torch.optim.Optimizer = make_optimizer(group.parameters, config)
        self.epoch = torch.zeros((), dtype=torch.int64, device=device)
        self.history = torch.full(
            (config.epochs, seeds, len(COLUMNS)),
            torch.nan,
            dtype=torch.float64,
            device=device,
        )
        self.failed_epoch = torch.zeros(seeds, dtype=torch.int64, device=device)
        self._selected = BestEpoch(config.selection, self.current, self.failed_epoch)
        self._further: dict[str, BestEpoch] = {}
        self.epochs_done = 0
        self._advance: Callable[[], None] | None = None

    @property
    def current(self) -> State:
        """Parameters and buffers as they are now."""
        return self.group.state

    @property
    def best(self) -> State:
        """Parameters and buffers of each run at its best epoch so far."""
        return self._selected.state

    def keep_best(self, rule: str) -> None:
        """Keeps the weights of the best epoch by a further selection rule too.

        To be called before the first epoch. They are no part of `state`.

        Args:
            rule: One of `SELECTION_RULES`.
        """
        if rule not in (self.config.selection, "last_epoch"):
            self._further[rule] = BestEpoch(rule, self.current, self.failed_epoch)

    def best_by(self, rule: str) -> State:
        """Parameters and buffers of each run at its best epoch so far, by a rule.

        Args:
            rule: The configured rule, one given to `keep_best`, or `last_epoch`.
        """
        if rule == self.config.selection:
            return self.best
        return self.current if rule == "last_epoch" else self._further[rule].state

    @property
    def all_failed(self) -> bool:
        """Whether every run has failed. Waits for the device."""
        return bool(self.failed_epoch.all())

    def run(
        self,
        until: int | None = None,
        on_epoch: Callable[[int], None] | None = None,
    ) -> None:
        """Trains until an epoch is done.

        Args:
            until: The epoch to stop after; None for the last one.
            on_epoch: Called with each epoch's number, from 1. On a GPU the work of the
                epoch may not have finished yet.
        """
        last = self.config.epochs if until is None else min(until, self.config.epochs)
        left = last - self.epochs_done
        device = self.group.task.device
        if self._advance is None:
            self._advance = self._one_epoch
            if self.group.can_be_captured:
                times = self.config.epochs - self.epochs_done
                self._advance = replayed(self._one_epoch, device, times)
        for _ in range(left):
            # On a GPU this check would make the host wait.
            if device.type == "cpu" and self.all_failed:
                break
            self._advance()
            self.epochs_done += 1
            if on_epoch is not None:
                on_epoch(self.epochs_done)
        if self.epochs_done == self.config.epochs:
            # A CUDA graph keeps the memory of an epoch for as long as it exists.
            self._advance = None

    @abstractmethod
    def _one_epoch(self) -> None:
        """Trains for an epoch and records its losses and scores."""

    @torch.no_grad()
    def _record(self, losses: Tensor, val_loss: Tensor, scores: Tensor) -> None:
        row = torch.cat([torch.stack([losses, val_loss], dim=1), scores], dim=1)
        self.history.index_copy_(0, self.epoch.view(1), row.unsqueeze(0))
        self.epoch += 1
        # The training loss is that of the weights before the step. If the last step
        # made the weights infinite or NaN, only the validation loss shows it.
        finite = losses.isfinite() & val_loss.isfinite()
        fails = ~finite & (self.failed_epoch == 0)
        self.failed_epoch += fails * self.epoch
        merits = {
            "best_val_accuracy": scores[:, SPLITS.index("val")],
            "best_val_loss": -val_loss,
            "last_epoch": self.epoch.double().expand_as(val_loss),
        }
        for best in (self._selected, *self._further.values()):
            best.update(merits[best.rule], self.current, self.failed_epoch == 0)

    def state(self) -> State:
        """Every tensor that is needed to continue the training later."""
        adam = {
            f"adam.{name}.{key}": value
            for name, parameter in self.group.parameters.items()
            for key, value in self.optimizer.state[parameter].items()
        }
        return {
            **{f"current.{name}": t.detach() for name, t in self.current.items()},
            **{f"best.{name}": value for name, value in self.best.items()},
            **adam,
            **self._progress,
        }

    @property
    def _progress(self) -> State:
        return {
            "epoch": self.epoch,
            "history": self.history,
            "failed_epoch": self.failed_epoch,
            "best_merit": self._selected.merit,
        }

    @torch.no_grad()
    def load_state(self, state: State) -> None:
        """Continues from a `state`."""
        for name, parameter in self.group.parameters.items():
            moments = {
                key: state[f"adam.{name}.{key}"].to(parameter.device, copy=True)
                for key in ("step", "exp_avg", "exp_avg_sq")
                if f"adam.{name}.{key}" in state
            }
            if moments:
                self.optimizer.state[parameter] = moments
        self.group.load_state(_with_prefix("current.", state))
        for name, value in _with_prefix("best.", state).items():
            self.best[name].copy_(value)
        for name, value in self._progress.items():
            value.copy_(state[name])
        self.epochs_done = int(self.epoch)
        # A captured graph works on the optimizer's former state.
        self._advance = None


class Training(EpochLoop):
    """Full-batch training: one step per epoch, for all runs of a group at once."""

    group: SeedGroup | ModuleGroup

    def __init__(self, group: SeedGroup | ModuleGroup, config: RunConfig) -> None:
        super().__init__(group, config)

    def _one_epoch(self) -> None:
        self.optimizer.zero_grad()
        losses = self.group.backward(self.epoch)
        if self.config.clip_norm is not None:
            self.group.clip_gradients(self.config.clip_norm)
        set_learning_rate(self.optimizer, self.config, self.epoch, self.config.epochs)
        self.optimizer.step()
        val_loss, scores = self.group.scores()
        self._record(losses, val_loss, scores)


def _with_prefix(prefix: str, state: State) -> State:
    return {
        name.removeprefix(prefix): value
        for name, value in state.items()
        if name.startswith(prefix)
    }


def chosen_epochs(history: np.ndarray) -> dict[str, int]:
    """The epoch, from 1, that each selection rule chooses for one seed.

    Args:
        history: One seed's rows of `Training.history`, [epochs, columns].
    """
    columns = dict(zip(COLUMNS, history.T, strict=True))
    # numpy's argmax and argmin return the first of equal values.
    return {
        "best_val_accuracy": int(np.argmax(columns["val"])) + 1,
        "last_epoch": len(history),
        "best_val_loss": int(np.argmin(columns["val_loss"])) + 1,
    }
