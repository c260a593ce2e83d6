"""The softmax temperature of an attention layer."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tempergat.ops import in_forward_mode

EPSILON = 1e-6


def check_temperature(temperature: str | float | None, init_temp: float) -> None:
    """Raises unless the arguments describe a temperature."""
    if isinstance(temperature, str):
        if temperature not in ("layer", "head"):
            raise ValueError(
                f"temperature must be 'layer', 'head', a positive number or None, "
                f"got {temperature!r}"
            )
        if not (_is_number(init_temp) and EPSILON < init_temp < math.inf):
            raise ValueError(
                f"init_temp must be a finite number above {EPSILON:g} (a softmax "
                f"temperature is positive), got {init_temp!r}; 1.0 is plain attention"
            )
    elif temperature is not None and not (
        _is_number(temperature) and 0 < temperature < math.inf
    ):
        raise ValueError(
            f"a fixed temperature must be positive and finite, got {temperature!r}; "
            f"use None for plain attention"
        )


@torch.no_grad()
def set_theta(theta: Tensor, temperature: float) -> None:
    """Sets theta so that its temperature is the given one, to the last bit it can."""
    target = temperature - EPSILON
    # log(exp(t) - 1), written so that neither a small nor a large t loses digits.
    start = torch.tensor(
        target + math.log(-math.expm1(-target)), dtype=theta.dtype, device="cpu"
    )
    candidates = [start]
    for end in (-torch.inf, torch.inf):
        nearby = start
        for _ in range(4):
            nearby = torch.nextafter(nearby, torch.full_like(nearby, end))
            candidates.append(nearby)
    errors = [(temperature_of(c) - temperature).abs().item() for c in candidates]
    theta.fill_(candidates[errors.index(min(errors))].item())


def temperature_of(theta: Tensor) -> Tensor:
    """``softplus(theta) + EPSILON``, in at least single precision."""
    softplus = F.softplus(at_least_float32(theta))
    if in_forward_mode():
        # Of a 0-d tensor and a number torch makes a float64 tangent.
        return softplus + torch.full_like(softplus, EPSILON)
    return softplus + EPSILON


def at_least_float32(x: Tensor) -> Tensor:
    """Half precision raised to float32; wider types as they are."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def make_theta(temperature: str, heads: int) -> nn.Parameter:
    """The uninitialised parameter of a learnable temperature."""
    return nn.Parameter(torch.empty(() if temperature == "layer" else (heads,)))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
