"""The softmax temperature of an attention layer."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn

from tempergat.ops import EPSILON
from tempergat.ops import temperature_of as temperature_of

TemperatureKind = Literal["layer", "head"] | float | None


def make_theta(
    kind: TemperatureKind, heads: int, init_temp: float = 1.0
) -> nn.Parameter | None:
    r"""The parameter of a learnable softmax temperature.

    The attention weights are :math:`softmax(e / T)` with
    :math:`T = softplus(\theta) + 10^{-6}`, which `temperature_of` computes. A layer has
    the parameter under the name ``theta``; an op that takes ``theta`` divides by T
    itself.

    Args:
        kind: ``"layer"`` (one number), ``"head"`` (one per head), a number (fixed) or
            None (plain attention).
        heads: The number of attention heads.
        init_temp: Initial value of the temperature.

    Returns:
        The parameter; None where nothing is learnt.

    Raises:
        ValueError: The temperature would not be positive and finite.
    """
    check_temperature(kind, init_temp)
    if not isinstance(kind, str):
        return None
    theta = nn.Parameter(torch.empty(() if kind == "layer" else (heads,)))
    set_theta(theta, init_temp)
    return theta


@torch.no_grad()
def set_theta(theta: Tensor, temperature: float) -> None:
    """Sets theta so that its temperature is as close to the given one as possible."""
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


def check_temperature(kind: object, init_temp: object) -> None:
    """Raises ValueError unless the temperature would be positive and finite."""
    if isinstance(kind, str):
        if kind not in ("layer", "head"):
            raise ValueError(
                f"temperature must be 'layer', 'head', a positive number or None, "
                f"got {kind!r}"
            )
        if not _is_number_above(EPSILON, init_temp):
            raise ValueError(
                f"init_temp must be a finite number above {EPSILON:g} (a softmax "
                f"temperature is positive), got {init_temp!r}; 1.0 is plain attention"
            )
    elif kind is not None and not _is_number_above(0, kind):
        raise ValueError(
            f"a fixed temperature must be positive and finite, got {kind!r}; "
            f"use None for plain attention"
        )


def _is_number_above(low: float, value: object) -> bool:
    """Whether the value is a finite number above ``low``."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return low < value < math.inf
