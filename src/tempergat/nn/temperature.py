"""The softmax temperature of an attention layer."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn

from tempergat.ops import EPSILON, at_least_float32
from tempergat.ops import divide_by_temperature as _divide
from tempergat.ops import temperature_of as temperature_of

TemperatureKind = Literal["layer", "head"] | float | None


class Temperature:
    r"""A softmax temperature that any attention layer can have, as a base class.

    The attention weights are :math:`softmax(e / T)`. A learnable temperature is
    :math:`T = softplus(\theta) + 10^{-6}`. It is the layer's parameter ``theta`` or, if
    it is fixed, a buffer that is not saved::

        class MyLayer(Temperature, nn.Module):
            def __init__(self, heads):
                super().__init__()
                self.add_temperature("head", heads, init_temp=0.5)

            def forward(self, query):
                query = self.divide_by_temperature(query)

    Attributes:
        theta: The parameter; None where nothing is learnt.
        temperature_kind: ``"layer"``, ``"head"``, a number or None.
        init_temp: The initial value of a learnable temperature.
    """

    theta: nn.Parameter | None
    fixed_temperature: Tensor | None

    def add_temperature(
        self, kind: TemperatureKind, heads: int, init_temp: float = 1.0
    ) -> None:
        """Registers ``theta`` at its initial value, or a fixed temperature.

        Args:
            kind: ``"layer"`` (one learnable number), ``"head"`` (one per head), a
                number (fixed) or None (plain attention).
            heads: The number of attention heads.
            init_temp: Initial value of a learnable temperature.

        Raises:
            ValueError: The temperature would not be positive and finite.
        """
        check_temperature(kind, init_temp)
        self.temperature_kind, self.init_temp = kind, init_temp
        assert isinstance(self, nn.Module)
        if isinstance(kind, str):
            shape = () if kind == "layer" else (heads,)
            self.register_parameter("theta", nn.Parameter(torch.empty(shape)))
            self.reset_temperature()
        else:
            self.register_parameter("theta", None)
            fixed = None if kind is None else torch.tensor(float(kind))
            self.register_buffer("fixed_temperature", fixed, persistent=False)

    def reset_temperature(self) -> None:
        """Sets a learnable temperature to its initial value."""
        if self.theta is not None:
            _set_theta(self.theta, self.init_temp)

    @property
    def temperature(self) -> Tensor | None:
        """The current softmax temperature: 0-d, [heads], or None when plain."""
        if (theta := self.theta) is not None:
            return temperature_of(theta)
        kind = self.temperature_kind
        if kind is None or isinstance(kind, str):
            return None
        assert self.fixed_temperature is not None
        # The buffer gives device and type. Its value may have been rounded by .half().
        like = at_least_float32(self.fixed_temperature)
        return torch.full_like(like, float(kind))

    def divide_by_temperature(self, x: Tensor) -> Tensor:
        """``x / T`` in at least float32.

        Args:
            x: A factor of the logits, [..., heads, channels].
        """
        return self.divide_by_fixed_temperature(_divide(x, self.theta))

    def divide_by_fixed_temperature(self, x: Tensor) -> Tensor:
        """``x / T`` if T is fixed; x itself for an op that takes ``theta``."""
        kind = self.temperature_kind
        if kind is None or isinstance(kind, str):
            return x
        temperature = self.temperature
        assert temperature is not None
        return at_least_float32(x) / temperature


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
