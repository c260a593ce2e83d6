"""The training loop: steps on batches, epochs that are evaluated, the best weights.

On a whole graph an epoch is one step, and everything that it reads or writes is a
tensor on the device. No value is read back before the end, so that a GPU never waits
for the host.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor

from tempergat.training.devices.capture import CapturedSteps, refusal, replayed
from tempergat.training.examples import SPLITS, Judged
from tempergat.training.exchange import Exchange
from tempergat.training.graphs.batches import Batch, WholeGraph
from tempergat.training.graphs.sampled_batches import LargeGraph
from tempergat.training.optimizer import make_optimizer, set_learning_rate
from tempergat.training.runs.models import BestEpoch, State
from tempergat.training.runs.modules import ModuleRuns
from tempergat.training.runs.stacked import StackedRuns
from tempergat.training.settings.config import RunConfig

# The columns of `Loop.history`.
COLUMNS = ("loss", "val_loss", *SPLITS)


class Loop:
    """The training of some runs, epoch by epoch.

    Dropout masks depend on a run's seed and on the number of the step since it began,
    and so do batches. So runs that continue from a `state`, even one in the middle of
    an epoch, do what they would have done.

    Args:
        runs: The models.
        batches: What they are trained on.
        config: Settings of the runs.
        exchange: Adds up the gradients of several processes; None for one process.

    Attributes:
        epoch: How many epochs are done, 0-d.
        history: Training loss, validation loss and scores after each epoch, float64,
            [epochs, runs, columns]. The training loss of an epoch on samples is the
            mean over its nodes, each with the weights before its own step.
        kept: The weights of each run at its best epoch so far, by selection rule.
        best: Those by the configured rule.
        failed_epoch: For each run, the first epoch whose loss was not a finite number,
            or 0.
        epochs_done: How many epochs are done.
        steps_done: How many steps of the current epoch are done.
        on_step: Called after every step on a sample, if not None; after several of them
            where steps are a CUDA graph.
    """

    def __init__(
        self,
        runs: StackedRuns | ModuleRuns,
        batches: WholeGraph | LargeGraph,
        config: RunConfig,
        exchange: Exchange | None = None,
    ) -> None:
        self.runs: Any = runs
        self.batches: Any = batches
        self.config = config
        self.task = runs.task
        self.device = device = runs.task.device
        self._exchange = exchange
        self.optimizer: torch.optim.Optimizer = make_optimizer(
            runs.parameters, config, runs.tables
        )
        count = len(runs.seeds)
        self.epoch = torch.zeros((), dtype=torch.int64, device=device)
        self.history = torch.full(
            (config.epochs, count, len(COLUMNS)),
            torch.nan,
            dtype=torch.float64,
            device=device,
        )
        self.failed_epoch = torch.zeros(count, dtype=torch.int64, device=device)
        kept = BestEpoch(runs.state, self.failed_epoch)
        self.kept: dict[str, BestEpoch] = {config.selection: kept}
        self.best = kept.state
        self.epochs_done = 0
        self.steps_done = 0
        self.on_step: Callable[[], None] | None = None
        self._loss_sum = torch.zeros((), dtype=torch.float64, device=device)
        self._seeds_seen = torch.zeros((), dtype=torch.int64, device=device)
        self._advance: Callable[[], None] | None = None
        self.captured = CapturedSteps(self) if refusal(self) is None else None

    def keep_best(self, rule: str) -> None:
        """Keeps the weights of the best epoch by another of `SELECTION_RULES`.

        To be called before the first epoch. They are no part of `state`.
        """
        if rule not in self.kept:
            self.kept[rule] = BestEpoch(self.runs.state, self.failed_epoch)

    @property
    def global_step(self) -> int:
        """How many steps are done since the runs began."""
        return self.epochs_done * len(self.batches) + self.steps_done

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
        if self._advance is None:
            self._advance = self._one_epoch
            if self.runs.can_be_captured:
                times = self.config.epochs - self.epochs_done
                self._advance = replayed(self._one_epoch, self.device, times)
        for _ in range(last - self.epochs_done):
            # On a GPU this check would make the host wait.
            if self.device.type == "cpu" and bool(self.failed_epoch.all()):
                break
            self._advance()
            self.epochs_done += 1
            if on_epoch is not None:
                on_epoch(self.epochs_done)
        self.runs.refuse_hidden_changes()
        if self.epochs_done == self.config.epochs:
            # A CUDA graph keeps the memory of an epoch for as long as it exists.
            self._advance = None

    def _one_epoch(self) -> None:
        if self.batches.is_whole:
            self.optimizer.zero_grad()
            losses, _ = self.backward(self.batches.batch, self.epoch)
            self.update(self.epoch)
            self._record(losses.float(), **self.judged(self.task.scores))
        else:
            self.train_epoch()
            self._record(self.epoch_loss(), **self.judged(self.task.scores))
            self.forget_steps()

    def backward(self, batch: Batch, step: Tensor) -> tuple[Tensor, int]:
        """Adds the gradients of a batch's loss, that of all processes.

        Args:
            batch: What is trained on.
            step: The number of the step since the runs began, 0-d.

        Returns:
            The loss of each run, [runs], and the number of nodes that it is about.
        """
        if self._exchange is not None:
            return self._exchange.backward(self.runs, batch, step)
        return self.runs.backward(batch, step), batch.labels.size(0)

    def update(self, step: Tensor) -> None:
        """Changes the weights by their gradients; the step is that of `backward`."""
        if self.config.clip_norm is not None:
            self.runs.clip_gradients(self.config.clip_norm)
        if self.config.schedule is not None:
            steps = self.config.epochs * len(self.batches)
            set_learning_rate(self.optimizer, self.config, step, steps)
        self.optimizer.step()

    def train_epoch(self) -> None:
        """Does the steps on samples that are left of the current epoch."""
        if self.captured is not None:
            self.captured.finish_epoch()
            return
        for batch in self.batches.epoch(self.epochs_done, self.steps_done):
            self.train_on(batch)
            if self.on_step is not None:
                self.on_step()

    def train_on(self, batch: Batch) -> None:
        """One step on a sample."""
        step = torch.tensor(self.global_step, device=self.device)
        self.optimizer.zero_grad()
        losses, count = self.backward(batch, step)
        self.update(step)
        self.add_loss(losses, count)
        self.steps_done += 1

    def add_loss(self, losses: Tensor, count: int | Tensor) -> None:
        """Counts a sample of so many nodes in the loss of the epoch."""
        # On samples there is one run.
        self._loss_sum += losses[0].double() * count
        self._seeds_seen += count

    def epoch_loss(self) -> Tensor:
        """The mean training loss of the samples of the epoch so far, [1]."""
        return (self._loss_sum / self._seeds_seen).unsqueeze(0)

    def forget_steps(self) -> None:
        """Begins the counts of an epoch again."""
        self.steps_done = 0
        self._loss_sum.zero_()
        self._seeds_seen.zero_()

    @torch.no_grad()
    def judged(
        self, judge: Callable[[Tensor, Judged], State], state: State | None = None
    ) -> State:
        """What a function of the task returns for each run, [runs, ...].

        Args:
            judge: Takes the class scores and the targets of a run.
            state: Parameters and buffers of all runs in place of the current ones.
        """

        def compute() -> State:
            with nullcontext() if state is None else self.runs.at(state):
                logits = self.batches.logits(self.runs)
                results: State = self.runs.each(judge, logits, self.batches.judged)
                return results

        return self.from_first(compute)

    def from_first(self, compute: Callable[[], State]) -> State:
        """Tensors that the first of several processes computes for all."""
        if self._exchange is None:
            return compute()
        return self._exchange.from_first(compute)

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
            "best_val_accuracy": self.task.metric.merit(scores[:, SPLITS.index("val")]),
            "best_val_loss": -val_loss,
            "last_epoch": self.epoch.double().expand_as(val_loss),
        }
        for rule, best in self.kept.items():
            best.update(merits[rule], self.runs.state, self.failed_epoch == 0)

    def state(self) -> State:
        """Every tensor that is needed to continue, in the middle of an epoch too."""
        adam = {
            f"adam.{name}.{key}": value
            for name, parameter in self.runs.parameters.items()
            for key, value in self.optimizer.state[parameter].items()
        }
        state = {
            **{f"current.{name}": t.detach() for name, t in self.runs.state.items()},
            **{f"best.{name}": value for name, value in self.best.items()},
            **adam,
            **self._progress,
        }
        if not self.batches.is_whole:
            state["steps_done"] = torch.tensor(self.steps_done)
        return state

    @property
    def _progress(self) -> State:
        progress = {
            "epoch": self.epoch,
            "history": self.history,
            "failed_epoch": self.failed_epoch,
            "best_merit": self.kept[self.config.selection].merit,
        }
        if not self.batches.is_whole:
            progress |= {"loss_sum": self._loss_sum, "seeds_seen": self._seeds_seen}
        return progress

    @torch.no_grad()
    def load_state(self, state: State) -> None:
        """Continues from a `state`."""
        for name, parameter in self.runs.parameters.items():
            moments = {
                key: state[f"adam.{name}.{key}"].to(parameter.device, copy=True)
                for key in ("step", "exp_avg", "exp_avg_sq")
                if f"adam.{name}.{key}" in state
            }
            if moments:
                self.optimizer.state[parameter] = moments
        self.runs.load_state({k: state[f"current.{k}"] for k in self.runs.state})
        for name, value in self.best.items():
            value.copy_(state[f"best.{name}"])
        for name, value in self._progress.items():
            value.copy_(state[name])
        self.epochs_done = int(self.epoch)
        # Captured work is on the optimizer's former state.
        self._advance = None
        if not self.batches.is_whole:
            self.steps_done = int(state["steps_done"])
        if self.captured is not None:
            self.captured = CapturedSteps(self)
