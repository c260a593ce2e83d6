"""Adam with a learning rate and a weight decay for each run of a group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from tempergat.training.optimizer import split_by_decay
from tempergat.training.settings import RunConfig

# The defaults of torch.optim.Adam.
_BETAS = (0.9, 0.999)
_EPS = 1e-8


class AdamOfRuns(torch.optim.Optimizer):
    """`torch.optim.Adam` on stacked parameters, with other rates for every run.

    Nothing is read back from the device, so a step can be captured as a CUDA graph.

    Args:
        parameters: The stacked parameters by name, [runs, ...] each.
        configs: The settings of each run; they have the same decayed parameters.
    """

    def __init__(
        self, parameters: Mapping[str, Tensor], configs: Sequence[RunConfig]
    ) -> None:
        decayed, undecayed = split_by_decay(parameters, configs[0])
        device = next(iter(parameters.values())).device
        decays = torch.tensor([c.weight_decay for c in configs], device=device)
        groups = [
            {"params": chosen, "weight_decay": decay}
            for chosen, decay in ((decayed, decays), (undecayed, None))
            if chosen
        ]
        super().__init__(groups, {})
        self._rates = torch.tensor(
            [c.learning_rate for c in configs], dtype=torch.float64, device=device
        )

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """One step of all runs."""
        moved = [
            (parameter, group["weight_decay"])
            for group in self.param_groups
            for parameter in group["params"]
            if parameter.grad is not None
        ]
        for parameter, _ in moved:
            state = self.state[parameter]
            if not state:
                state["step"] = torch.zeros((), device=parameter.device)
                state["exp_avg"] = torch.zeros_like(parameter)
                state["exp_avg_sq"] = torch.zeros_like(parameter)
            state["step"] += 1
        # All parameters have done the same number of steps.
        step = self.state[moved[0][0]]["step"].double()
        rates = (self._rates / (1.0 - _BETAS[0] ** step)).float()
        root = (1.0 - _BETAS[1] ** step).sqrt().float()
        for parameter, decay in moved:
            self._move(parameter, decay, rates, root)

    def _move(
        self, parameter: Tensor, decay: Tensor | None, rates: Tensor, root: Tensor
    ) -> None:
        gradient, state = parameter.grad, self.state[parameter]
        assert gradient is not None
        by_run = (-1, *[1] * (parameter.dim() - 1))
        if decay is not None:
            gradient = torch.addcmul(gradient, parameter, decay.view(by_run))
        mean = state["exp_avg"].lerp_(gradient, 1.0 - _BETAS[0])
        square = state["exp_avg_sq"].mul_(_BETAS[1])
        square.addcmul_(gradient, gradient, value=1.0 - _BETAS[1])
        change = mean / (square.sqrt() / root).add_(_EPS)
        parameter.addcmul_(change, rates.view(by_run), value=-1.0)
