"""One run on sampled batches, trained by several processes with equal models.

Each process computes the gradient of its part of a batch. The gradient of the batch is
their mean, weighted by the numbers of seeds, as one process would have computed it. It
is exchanged in one vector that always has the same layout: torch's own wrapper for
models (DistributedDataParallel) arranges gradients differently after its first step,
and a run that continues from a checkpoint would then end with other last bits.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from tempergat.training.evaluate import Evaluation
from tempergat.training.ranks.processes import Ranks
from tempergat.training.sampled import (
    BatchInputs,
    SampledGroup,
    SampledTask,
    SampledTraining,
)
from tempergat.training.seeds import LayerValues, State
from tempergat.training.settings import RunConfig
from tempergat.training.user_methods import BuildModule

# Dropout masks depend on the number of the step; other processes count from here.
_STEPS_OF_A_RANK = 2**40
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
        """As `SampledGroup.scores`; the first process's buffers are those of all."""
        self.ranks.copy_from_first(self.model.buffers())
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
            loss = super().backward(inputs, step + ranks.rank * _STEPS_OF_A_RANK)
            labels = inputs.labels
            weight = (
                torch.tensor(float(inputs.num_seeds), device=ranks.device)
                if weights is None
                else weights[labels].sum()
            )
        numbers = [loss * weight, weight, torch.tensor(float(inputs.num_seeds))]
        has_gradient = [float(p.grad is not None) for p in parameters]
        vector = torch.cat(
            [
                *(_gradient(parameter).flatten() * weight for parameter in parameters),
                torch.stack([number.to(ranks.device) for number in numbers]),
                torch.tensor(has_gradient, device=ranks.device),
            ]
        )
        ranks.add_up(vector)
        sizes = [*(parameter.numel() for parameter in parameters), 3, len(parameters)]
        *gradients, totals, counts = torch.split(vector, sizes)
        loss_sum, weight_sum, seeds = totals
        for parameter, gradient, count in zip(
            parameters, gradients, counts.tolist(), strict=True
        ):
            # The optimizer leaves parameters without a gradient as they are.
            parameter.grad = None
            if count:
                parameter.grad = (gradient / weight_sum).view_as(parameter)
        self._seeds_of_batch = int(seeds)
        whole: Tensor = loss_sum / weight_sum
        return whole

    def add_loss(self, loss: Tensor, num_seeds: int | Tensor) -> None:
        """Counts the whole batch in the loss of the epoch."""
        super().add_loss(loss, self._seeds_of_batch)


def _gradient(parameter: Tensor) -> Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
