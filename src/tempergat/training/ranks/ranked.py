"""One run on sampled batches, trained by several processes with equal models.

Each process computes the gradient of its part of a batch. The gradient of the batch is
their mean, weighted by the numbers of seeds, as one process would have computed it.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from tempergat.training.evaluate import Evaluation
from tempergat.training.ranks.exchange import STEPS_OF_A_RANK, add_gradients
from tempergat.training.ranks.processes import Ranks
from tempergat.training.sampled.group import SampledGroup
from tempergat.training.sampled.loop import SampledTraining
from tempergat.training.sampled.task import BatchInputs, SampledTask
from tempergat.training.seeds import LayerValues, State
from tempergat.training.settings.config import RunConfig
from tempergat.training.user_methods.user_code import BuildModule

_CONFUSION = "confusion"


class RankedGroup(SampledGroup):
    """The model of one run; the first process evaluates it for all.

    Args:
        task: The features, edges and labels.
        config: Settings of the run.
        seed: Its seed.
        ranks: The processes.
        build: Builds a user's own module; None for the built-in methods.
    """

    def __init__(
        self,
        task: SampledTask,
        config: RunConfig,
        seed: int,
        ranks: Ranks,
        build: BuildModule | None = None,
    ) -> None:
        super().__init__(task, config, seed, build)
        self.ranks = ranks

    def scores(self) -> tuple[Tensor, Tensor]:
        """As `SampledGroup.scores`."""
        compute = super().scores
        values = self._from_first(
            lambda: dict(zip(("val_loss", "scores"), compute(), strict=True))
        )
        return values["val_loss"], values["scores"]

    def evaluation(self, state: State) -> Evaluation:
        """As `SampledGroup.evaluation`."""
        compute = super().evaluation

        def tensors() -> dict[str, Tensor]:
            found = compute(state)
            return {_CONFUSION: found.confusion, **found.scores}

        values = self._from_first(tensors)
        return Evaluation(values.pop(_CONFUSION), values)

    def layer_values(self, state: State) -> LayerValues:
        """As `SampledGroup.layer_values`."""
        compute = super().layer_values
        values = self._from_first(lambda: dict(vars(compute(state))))
        return LayerValues(**values)

    def _from_first(
        self, compute: Callable[[], dict[str, Tensor]]
    ) -> dict[str, Tensor]:
        """The tensors that the first process computes, on the device of this one."""
        found = self.ranks.from_first(
            lambda: {name: value.cpu() for name, value in compute().items()}
        )
        return {name: value.to(self.task.device) for name, value in found.items()}


class RankedTraining(SampledTraining):
    """The training of one run by several processes.

    Each has its part of every batch, and all have the same weights after every step.

    Args:
        group: The model.
        config: Settings of the run.
    """

    group: RankedGroup

    def __init__(self, group: RankedGroup, config: RunConfig) -> None:
        ranks = group.ranks
        super().__init__(group, config, ranks.rank, ranks.world_size)
        self._seeds_of_batch = 0

    def backward(self, inputs: BatchInputs, step: Tensor) -> Tensor:
        """Adds the gradients of the whole batch's loss; returns that loss."""
        ranks, weights = self.group.ranks, self.group.task.class_weights
        parameters = list(self.group.parameters.values())
        loss = torch.zeros((), device=ranks.device)
        weight = loss
        # The last batch of an epoch may have no seed for some processes.
        if inputs.num_seeds:
            loss = super().backward(inputs, step + ranks.rank * STEPS_OF_A_RANK)
            labels = inputs.labels
            weight = (
                torch.tensor(float(inputs.num_seeds), device=ranks.device)
                if weights is None
                else weights[labels].sum()
            )
        for parameter in parameters:
            if parameter.grad is not None:
                parameter.grad *= weight
        seeds = torch.tensor(float(inputs.num_seeds), device=ranks.device)
        numbers = torch.stack([loss * weight, weight, seeds])
        loss_sum, weight_sum, count = add_gradients(ranks, parameters, numbers)
        for parameter in parameters:
            if parameter.grad is not None:
                parameter.grad /= weight_sum
        # Batch norm sees this process's part; the first one's statistics are kept.
        ranks.copy_from_first(self.group.model.buffers())
        self._seeds_of_batch = int(count)
        whole: Tensor = loss_sum / weight_sum
        return whole

    def add_loss(self, loss: Tensor, num_seeds: int | Tensor) -> None:
        """Counts the whole batch in the loss of the epoch."""
        super().add_loss(loss, self._seeds_of_batch)
