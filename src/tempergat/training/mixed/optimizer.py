"""Adam with a learning rate and a weight decay for each run of a group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from tempergat.training.optimizer import is_decayed
from tempergat.training.settings import RunConfig


class AdamOfRuns(torch.optim.Optimizer):
    """`torch.optim.Adam` on stacked parameters, with other rates for every run.

    The change that Adam makes is proportional to the learning rate. So torch's Adam
    steps with a rate of 1 from zeros, and each run takes its rate times the outcome.
    All parameters are one matrix there, [runs, values], which saves kernels. Nothing is
    read back from the device, so a step can be captured as a CUDA graph.

    Args:
        parameters: The stacked parameters by name, [runs, ...] each. The first step
            fixes which of them have a gradient.
        configs: The settings of each run; they have the same decayed parameters.
    """

    def __init__(
        self, parameters: Mapping[str, Tensor], configs: Sequence[RunConfig]
    ) -> None:
        super().__init__(list(parameters.values()), {})
        device = next(iter(parameters.values())).device
        self._rates = torch.tensor([c.learning_rate for c in configs], device=device)
        decays = torch.tensor([[c.weight_decay] for c in configs], device=device)
        self._decays = {
            parameter: decays if is_decayed(name, configs[0]) else 0.0 * decays
            for name, parameter in parameters.items()
        }
        self._adam: torch.optim.Adam | None = None

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """One step of all runs."""
        moved = [p for p in self._decays if p.grad is not None]
        gradients = _as_matrix([p.grad for p in moved if p.grad is not None])
        if self._adam is None:
            self._change = torch.zeros_like(gradients)
            self._decay = _as_matrix(
                [self._decays[p].expand(-1, p[0].numel()) for p in moved]
            )
            self._adam = torch.optim.Adam(
                [self._change], lr=1.0, fused=True, capturable=gradients.is_cuda
            )
        self._change.zero_()
        self._change.grad = gradients.addcmul_(_as_matrix(moved), self._decay)
        self._adam.step()
        sizes = [p[0].numel() for p in moved]
        changes = torch.split(self._change, sizes, dim=1)
        for parameter, change in zip(moved, changes, strict=True):
            rates = self._rates.view(-1, *[1] * (parameter.dim() - 1))
            parameter.addcmul_(change.view_as(parameter), rates)
        return None


def _as_matrix(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors of [runs, ...] side by side, [runs, values]."""
    return torch.cat([tensor.reshape(tensor.size(0), -1) for tensor in tensors], dim=1)
