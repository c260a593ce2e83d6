"""The softmax temperature of an attention layer."""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tempergat.ops import divide_by_temperature, in_forward_mode

EPSILON = 1e-6

TemperatureKind = Literal["layer", "head"] | float | None


class Temperature:
    r"""A softmax temperature that any attention layer can have.

    The attention weights are :math:`softmax(e / T)`. A learnable temperature is
    :math:`T = softplus(\theta) + 10^{-6}`.

    This object holds the settings; the tensors are registered on the layer itself,
    as parameter ``theta`` or, for a fixed temperature, as a buffer that is not saved.
    So they move, copy and save with the layer, and ``state_dict()`` and
    ``named_parameters()`` name them without a prefix. Every method takes the layer::

        self.softmax_temperature = Temperature("head", init_temp=0.5)
        self.softmax_temperature.add_to(self, heads)
        ...
        query = self.softmax_temperature.divide(self, query)

    Args:
        kind: ``"layer"`` (one learnable number), ``"head"`` (one per head), a number
            (fixed) or None (plain attention).
        init_temp: Initial value of a learnable temperature.

    Raises:
        ValueError: The temperature would not be positive and finite.
    """

    def __init__(self, kind: TemperatureKind, init_temp: float = 1.0) -> None:
        _check(kind, init_temp)
        self.kind = kind
        self.init_temp = init_temp

    def add_to(self, layer: Any, heads: int) -> None:
        """Registers ``theta`` on the layer at its initial value, or a fixed number."""
        if isinstance(self.kind, str):
            shape = () if self.kind == "layer" else (heads,)
            layer.register_parameter("theta", nn.Parameter(torch.empty(shape)))
            self.reset(layer)
        else:
            layer.register_parameter("theta", None)
            fixed = None if self.kind is None else torch.tensor(float(self.kind))
            layer.register_buffer("fixed_temperature", fixed, persistent=False)

    def reset(self, layer: Any) -> None:
        """Sets a learnable temperature to its initial value."""
        if layer.theta is not None:
            _set_theta(layer.theta, self.init_temp)

    @property
    def is_fixed(self) -> bool:
        """Whether the temperature is a number that is not learned."""
        return self.kind is not None and not isinstance(self.kind, str)

    def value(self, layer: Any) -> Tensor | None:
        """The current temperature: 0-d, [heads], or None for plain attention."""
        if layer.theta is not None:
            return temperature_of(layer.theta)
        if self.kind is None:
            return None
        # The buffer gives device and type. Its value may have been rounded by .half().
        like = at_least_float32(layer.fixed_temperature)
        return torch.full_like(like, float(self.kind))

    def parts(self, layer: Any) -> tuple[Tensor | None, float]:
        """``theta`` and `EPSILON`; for a fixed temperature None and the temperature."""
        if layer.theta is not None:
            return layer.theta, EPSILON
        return None, 1.0 if self.kind is None else float(self.kind)

    def divide(self, layer: Any, x: Tensor) -> Tensor:
        """``x / T`` in at least float32.

        Args:
            layer: The layer.
            x: A factor of the logits, [..., heads, channels].
        """
        x = at_least_float32(x)
        if x.is_cuda and layer.theta is not None:
            quotient = divide_by_temperature(x, layer.theta, EPSILON)
            if quotient is not None:
                return quotient
        temperature = self.value(layer)
        if temperature is None:
            return x
        return x / temperature.view(-1, 1)


def temperature_of(theta: Tensor) -> Tensor:
    """``softplus(theta) + EPSILON``, in at least float32."""
    softplus = F.softplus(at_least_float32(theta))
    if in_forward_mode():
        # In forward mode, a 0-d tensor plus a Python number has a float64 tangent.
        return softplus + torch.full_like(softplus, EPSILON)
    return softplus + EPSILON


def at_least_float32(x: Tensor) -> Tensor:
    """Converts half precision to float32; other types stay."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


@torch.no_grad()
def _set_theta(theta: Tensor, temperature: float) -> None:
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


def _check(kind: object, init_temp: object) -> None:
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
