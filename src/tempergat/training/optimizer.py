"""Adam, with weight decay on the parameters that the settings choose.

Adam treats each element separately, so one step on the stacked parameters of several
seeds is exactly one step of every seed.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from tempergat.training.config import RunConfig


def make_adam(parameters: Mapping[str, Tensor], config: RunConfig) -> torch.optim.Adam:
    """Adam with an L2 term on the parameters that `is_decayed` chooses."""
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
    return torch.optim.Adam(
        groups, lr=config.learning_rate, fused=True, capturable=device.type == "cuda"
    )


def is_decayed(name: str, config: RunConfig) -> bool:
    """Whether a parameter, by its name in the model, is subject to weight decay."""
    *path, leaf = name.split(".")
    if leaf == "theta":
        return config.decay_temperature
    if any(part.startswith("lin_gate") for part in path):
        return config.decay_gate
    if leaf == "bias":
        return config.decay_bias
    return True
