"""The optimizer of the settings: Adam or AdamW, learning rate, limit of the gradient.

Adam treats each element separately, so one step on the stacked parameters of several
seeds is exactly one step of every seed. Nothing here reads a value back, so that a step
can be captured as a CUDA graph.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from tempergat.training.settings.config import RunConfig

# As torch.nn.utils.clip_grad_norm_ has it.
_LEAST_NORM = 1e-6


def make_optimizer(
    parameters: Mapping[str, Tensor],
    config: RunConfig,
    tables: Collection[str] = (),
) -> torch.optim.Adam:
    """The optimizer, with weight decay on the parameters that `is_decayed` chooses.

    Args:
        tables: The names of those with sparse gradients, whose rows without a gradient
            stay as they are.
    """
    decayed: list[Tensor] = []
    undecayed: list[Tensor] = []
    for name, parameter in parameters.items():
        if name not in tables:
            (decayed if is_decayed(name, config) else undecayed).append(parameter)
    groups = [
        {"params": chosen, "weight_decay": decay}
        for chosen, decay in ((decayed, config.weight_decay), (undecayed, 0.0))
        if chosen
    ]
    device = next(iter(parameters.values())).device
    rate: float | Tensor = config.learning_rate
    if config.schedule is not None:
        rate = torch.tensor(config.learning_rate, device=device)
    is_cuda, is_decoupled = device.type == "cuda", config.optimizer == "adamw"
    options: dict[str, Any] = {"lr": rate, "fused": True, "capturable": is_cuda}
    if tables:
        # torch 2.6 has no such option of Adam.
        options |= {"decoupled_weight_decay": True} if is_decoupled else {}
        return TableAdam(groups, [parameters[name] for name in tables], **options)
    # AdamW is a subclass of Adam.
    kind = torch.optim.AdamW if is_decoupled else torch.optim.Adam
    return kind(groups, **options)


class TableAdam(torch.optim.Adam):
    """Adam that also updates the rows of tables that have a gradient.

    A step costs the time of those rows alone. As in torch's ``SparseAdam``, the moments
    of a row change only in steps where it has a gradient.

    Args:
        groups: Groups of the other parameters, with their settings.
        tables: Parameters with sparse gradients, in none of the groups.
        **options: Settings of all groups.
    """

    def __init__(
        self, groups: list[dict[str, Any]], tables: list[Tensor], **options: Any
    ) -> None:
        super().__init__(groups, **options)
        self._tables = tables

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears all gradients."""
        super().zero_grad(set_to_none)
        for table in self._tables:
            table.grad = None

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """One step of all parameters, and of the rows that have a gradient."""
        loss = super().step(closure)
        for table in self._tables:
            if table.grad is not None:
                self._step_rows(table, table.grad.coalesce())
        return loss

    def _step_rows(self, table: Tensor, gradient: Tensor) -> None:
        group = self.param_groups[0]
        state = self.state[table]
        if not state:
            state["step"] = torch.zeros((), device=table.device)
            state["exp_avg"] = torch.zeros_like(table)
            state["exp_avg_sq"] = torch.zeros_like(table)
        first, second = group["betas"]
        state["step"] += 1
        rows, values = gradient.indices()[0], gradient.values()
        mean = state["exp_avg"].index_select(0, rows).lerp_(values, 1.0 - first)
        square = state["exp_avg_sq"].index_select(0, rows)
        square.lerp_(values.square(), 1.0 - second)
        state["exp_avg"].index_copy_(0, rows, mean)
        state["exp_avg_sq"].index_copy_(0, rows, square)
        mean /= 1.0 - first ** state["step"]
        square /= 1.0 - second ** state["step"]
        change = mean.div_(square.sqrt_().add_(group["eps"])).mul_(group["lr"])
        # A row occurs once, so this equals an addition, and is the same every time.
        table.index_copy_(0, rows, table.index_select(0, rows).sub_(change))


@torch.no_grad()
def clip_gradients(parameters: Iterable[Tensor], most: float) -> None:
    """Scales down one run's gradient, sparse or not, to a norm of at most `most`."""
    gradients = []
    for parameter in parameters:
        if parameter.grad is None:
            continue
        if parameter.grad.is_sparse:
            parameter.grad = parameter.grad.coalesce()
            gradients.append(parameter.grad.values())
        else:
            gradients.append(parameter.grad)
    norm = torch.stack([g.norm() for g in gradients]).norm()
    factor = (most / (norm + _LEAST_NORM)).clamp(max=1.0)
    for gradient in gradients:
        gradient.mul_(factor)


@torch.no_grad()
def set_learning_rate(
    optimizer: torch.optim.Optimizer, config: RunConfig, step: Tensor, steps: int
) -> None:
    """Sets the learning rate of a step, as the schedule of the settings has it.

    Args:
        step: The number of the step, from 0; 0-d.
        steps: How many steps the run has.
    """
    share = (step.double() * (math.pi / steps)).cos().add(1.0).mul(0.5)
    for group in optimizer.param_groups:
        group["lr"].copy_(config.learning_rate * share)


@torch.no_grad()
def clip_stacked(parameters: Iterable[Tensor], most: float) -> None:
    """Scales down each run's gradient, [runs, ...], to a norm of at most `most`."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    squares = [g.reshape(g.size(0), -1).square().sum(1) for g in gradients]
    norms = torch.stack(squares).sum(0).sqrt()
    factors = (most / (norms + _LEAST_NORM)).clamp(max=1.0)
    for gradient in gradients:
        gradient.mul_(factors.view(-1, *[1] * (gradient.dim() - 1)))


def is_decayed(name: str, config: RunConfig) -> bool:
    """Whether a parameter, by its name in the model, is subject to weight decay."""
    *path, leaf = name.split(".")
    if "tables" in path:
        # Decay would shrink the vectors of nodes that no batch has reached yet.
        return False
    if leaf == "theta":
        return config.decay_temperature
    if any(part.startswith("lin_gate") for part in path):
        return config.decay_gate
    if leaf == "bias":
        return config.decay_bias
    return True
