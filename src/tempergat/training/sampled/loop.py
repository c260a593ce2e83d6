"""The training loop of a run on sampled batches, evaluated after every epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from tempergat.training.loop import EpochLoop
from tempergat.training.optimizer import make_optimizer, set_learning_rate
from tempergat.training.sampled.captured import CapturedSteps, refusal
from tempergat.training.sampled.group import SampledGroup
from tempergat.training.sampled.task import BatchInputs
from tempergat.training.seeds import State
from tempergat.training.settings.config import RunConfig


class SampledTraining(EpochLoop):
    """The training of one run on sampled batches.

    An epoch goes once over all training nodes, in another order each time. The batches
    depend on the run's seed, the epoch and the step alone, and dropout masks on the
    seed and the number of the step since the run began. So a run that continues from a
    `state`, even one in the middle of an epoch, has the batches it would have had.

    The training loss of an epoch is the mean over its training nodes, each with the
    weights before its own step.

    Args:
        group: The model.
        config: Settings of the run.
        rank: Which of several processes with equal models this is.
        world_size: Number of these processes. A batch then has `config.batch_size`
            nodes of all of them together.

    Attributes:
        steps_done: How many steps of the current epoch are done.
        on_step: Called after every step, if not None; after several of them where
            steps are a CUDA graph.
    """

    group: SampledGroup

    def __init__(
        self, group: SampledGroup, config: RunConfig, rank: int = 0, world_size: int = 1
    ) -> None:
        super().__init__(group, config)
        if group.tables:
            self.optimizer = make_optimizer(group.parameters, config, group.tables)
        task = group.task
        assert config.fanout is not None
        assert config.batch_size is not None
        self.sampler = task.sampler(
            task.nodes["train"],
            config.fanout,
            -(-config.batch_size // world_size),
            group.seeds[0],
            training=True,
            rank=rank,
            world_size=world_size,
        )
        self.steps_done = 0
        self.on_step: Callable[[], None] | None = None
        self._captured: CapturedSteps | None = None
        if refusal(self) is None:
            self._captured = CapturedSteps(self)
        self._loss_sum = torch.zeros((), dtype=torch.float64, device=task.device)
        self._seeds_seen = torch.zeros((), dtype=torch.int64, device=task.device)

    @property
    def global_step(self) -> int:
        """How many steps are done since the run began."""
        return self.epochs_done * len(self.sampler) + self.steps_done

    def batches(self) -> Iterator[Any]:
        """The batches that are left of the current epoch."""
        self.sampler.set_epoch(self.epochs_done, self.steps_done)
        return iter(self.sampler)

    def train_on(self, batch: Any) -> None:
        """One step on a batch of the sampler."""
        inputs = self.group.task.inputs(batch, self.group.task.labels["train"])
        number = self.global_step
        step = torch.tensor(number, device=self.group.task.device)
        self.optimizer.zero_grad()
        loss = self.backward(inputs, step)
        self.update(step)
        self.add_loss(loss, inputs.num_seeds)
        self.steps_done += 1

    def update(self, step: Tensor) -> None:
        """Changes the weights by their gradients.

        Args:
            step: As in `backward`.
        """
        if self.config.clip_norm is not None:
            self.group.clip_gradients(self.config.clip_norm)
        steps = self.config.epochs * len(self.sampler)
        set_learning_rate(self.optimizer, self.config, step, steps)
        self.optimizer.step()

    def add_loss(self, loss: Tensor, num_seeds: int | Tensor) -> None:
        """Counts a batch in the loss of the epoch."""
        self._loss_sum += loss.double() * num_seeds
        self._seeds_seen += num_seeds

    def backward(self, inputs: BatchInputs, step: Tensor) -> Tensor:
        """Adds the gradients of a batch's loss; returns the loss.

        Training over several processes puts the mean over all of them in their place.

        Args:
            inputs: The batch.
            step: The number of the step since the run began, 0-d.
        """
        loss = self.group.loss(inputs, step)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    def epoch_loss(self) -> Tensor:
        """The mean training loss of the epoch so far, [1]."""
        return (self._loss_sum / self._seeds_seen).unsqueeze(0)

    def train_epoch(self) -> None:
        """Does the steps that are left of the current epoch."""
        if self._captured is not None:
            self._captured.finish_epoch()
            return
        for batch in self.batches():
            self.train_on(batch)
            if self.on_step is not None:
                self.on_step()

    def forget_steps(self) -> None:
        """Begins the counts of an epoch again."""
        self.steps_done = 0
        self._loss_sum.zero_()
        self._seeds_seen.zero_()

    def _one_epoch(self) -> None:
        self.train_epoch()
        val_loss, scores = self.group.scores()
        self._record(self.epoch_loss(), val_loss, scores)
        self.forget_steps()

    @property
    def _progress(self) -> State:
        return {
            **super()._progress,
            "loss_sum": self._loss_sum,
            "seeds_seen": self._seeds_seen,
        }

    def state(self) -> State:
        """Every tensor that is needed to continue, in the middle of an epoch too."""
        return {**super().state(), "steps_done": torch.tensor(self.steps_done)}

    def load_state(self, state: State) -> None:
        """Continues from a `state`."""
        super().load_state(state)
        self.steps_done = int(state["steps_done"])
        # A recorded step works on the optimizer's former state.
        if self._captured is not None:
            self._captured = CapturedSteps(self)
