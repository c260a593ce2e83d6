"""The exchange of gradients between processes.

They are added up in one vector that always has the same layout: torch's own wrapper
for models (DistributedDataParallel) arranges gradients differently after its first
step, and a run that continues from a checkpoint would then end with other last bits.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tempergat.training.ranks.processes import Ranks

# Dropout masks depend on the number of the step; other processes count from here.
STEPS_OF_A_RANK = 2**40


def add_gradients(
    ranks: Ranks, parameters: Sequence[Tensor], numbers: Tensor
) -> Tensor:
    """Puts the sum over all processes in the place of the parameters' gradients.

    A parameter that has a gradient in no process has none afterwards: the optimizer
    leaves it as it is.

    Args:
        ranks: The processes.
        parameters: The parameters, in the same order in all of them.
        numbers: Further numbers to add up, [n].

    Returns:
        The sums of the numbers.
    """
    has_gradient = [float(p.grad is not None) for p in parameters]
    vector = torch.cat(
        [
            *(_gradient(parameter).flatten() for parameter in parameters),
            numbers.to(ranks.device),
            torch.tensor(has_gradient, device=ranks.device),
        ]
    )
    ranks.add_up(vector)
    counted = [numbers.numel(), len(parameters)]
    sizes = [*(parameter.numel() for parameter in parameters), *counted]
    *gradients, totals, counts = torch.split(vector, sizes)
    for parameter, gradient, count in zip(
        parameters, gradients, counts.tolist(), strict=True
    ):
        parameter.grad = gradient.view_as(parameter) if count else None
    return totals


def _gradient(parameter: Tensor) -> Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
