"""The optimizer of the settings: Adam or AdamW, learning rate, limit of the gradient.

Adam treats each element separately, so one step on the stacked parameters of several
seeds is exactly one step of every seed. Nothing here reads a value back, so that a step
can be captured as a CUDA graph.
"""

import math
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from tempergat.training.config import RunConfig

# As torch.nn.utils.clip_grad_norm_ has it.
_LEAST_NORM = 1e-6


def make_optimizer(
    parameters: Mapping[str, Tensor], config: RunConfig
) -> torch.optim.Adam:
    """The optimizer, with weight decay on the parameters that `is_decayed` chooses."""
    decayed = {
        name: parameter
        for name, parameter in parameters.items()
        if is_decayed(name, config)
    }
    undecayed = {n: p for n, p in parameters.items() if n not in decayed}
    groups = [
        {"params": list(chosen.values()), "weight_decay": decay}
        for chosen, decay in ((decayed, config.weight_decay), (undecayed, 0.0))
        if chosen
    ]
    device = next(iter(parameters.values())).device
    rate: float | Tensor = config.learning_rate
    if config.schedule is not None:
        rate = torch.tensor(config.learning_rate, device=device)
    # AdamW is a subclass of Adam.
    kind = torch.optim.AdamW if config.optimizer == "adamw" else torch.optim.Adam
    return kind(groups, lr=rate, fused=True, capturable=device.type == "cuda")


@torch.no_grad()
def set_learning_rate(
    optimizer: torch.optim.Optimizer, config: RunConfig, step: Tensor, steps: int
) -> None:
    """Sets the learning rate of a step, where the settings have a schedule.

    Args:
        optimizer: Made by `make_optimizer`.
        config: The settings.
        step: The number of the step, from 0; 0-d.
        steps: How many steps the run has.
    """
    if config.schedule is None:
        return
    share = (step.double() * (math.pi / steps)).cos().add(1.0).mul(0.5)
    for group in optimizer.param_groups:
        group["lr"].copy_(config.learning_rate * share)


@torch.no_grad()
def clip_stacked(parameters: Iterable[Tensor], most: float) -> None:
    """Scales down every run's gradient whose norm exceeds a limit.

    Args:
        parameters: The stacked parameters of all runs, [runs, ...] each.
        most: The limit.
    """
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
