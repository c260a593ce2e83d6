"""Gates and attention vectors that serve as controls; no layer of the library has them.

Each is a base class that `put_control` gives an attention layer, so the layer's kernels
run it, and so do all seeds at once.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from tempergat.ops import Graph, weighted_sum


class ConstantGate:
    r"""A gate :math:`g = \sigma(b)` with one number per channel, for all nodes.

    It reads no features. The next linear map could take it over, so it changes how a
    layer is optimised and not what it can express.
    """

    def prepare(self: Any) -> None:
        """Puts the gate's numbers in the place of its linear map."""
        width = self.lin_gate.out_channels
        self.lin_gate = _ConstantLogit(width, self.gate_bias_init)

    def gate_maps(self) -> list[Any]:
        """No linear map."""
        return []

    def gate_logit(self: Any, x_dst: Any) -> Tensor:
        """The logit of every channel, [1, width]."""
        logit: Tensor = self.lin_gate.bias
        return logit.unsqueeze(0)


class _ConstantLogit(nn.Module):
    """The numbers inside a constant gate's sigmoid, under a gate's usual name."""

    def __init__(self, width: int, bias_init: float) -> None:
        super().__init__()
        self.bias_init = bias_init
        self.bias = nn.Parameter(torch.empty(width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.constant_(self.bias, self.bias_init)


class NeighbourGate:
    r"""A gate :math:`g_i = \sigma(W_g m_i + b_g)` fed by the neighbours' mean.

    It has the parameters of the gate on the output, but :math:`m_i` is the mean of the
    neighbours' features, without those of node :math:`i` itself. For a node without
    neighbours it is :math:`\sigma(b_g)`.

    Attributes:
        neighbours: The edges without self-loops.
    """

    neighbours: Graph

    lin_gate: Any

    def gate_logit(self, x_dst: Any) -> Tensor:
        """The mean over the neighbours of their logits."""
        # The gate's map is linear: the mean of the logits is the logit of the mean.
        total = weighted_sum(self.neighbours, super().gate_logit(x_dst))  # type: ignore[misc]
        degree = self.neighbours.by_target.pointer.diff().unsqueeze(-1)
        mean = total / degree.clamp(min=1)
        return torch.where(degree == 0, self.lin_gate.bias, mean)


class FixedNorm:
    r"""Attention vectors of fixed norm: only their direction is learned.

    The logits of a head are computed from :math:`c \, a / \lVert a \rVert`, where
    :math:`c` is about the norm of :math:`a` at the start of training. A temperature can
    then not be replaced by another norm of :math:`a`.
    """

    def divide_by_fixed_temperature(self, x: Tensor) -> Tensor:
        """Attention vectors at their fixed norm, over a temperature that is fixed.

        Args:
            x: The layer's attention vectors, [..., heads, channels].
        """
        norm = attention_vector(self).norm(dim=-1, keepdim=True)
        scaled = x * (fixed_norm(self) / norm)
        divided: Tensor = super().divide_by_fixed_temperature(scaled)  # type: ignore[misc]
        return divided


def attention_vector(layer: Any) -> Tensor:
    """The attention vector of each head, [1, heads, channels or twice as many]."""
    if hasattr(layer, "att"):
        vector: Tensor = layer.att
        return vector
    return torch.cat([layer.att_src, layer.att_dst], dim=-1)


def fixed_norm(layer: Any) -> float:
    """The root mean square of the attention vector's norm when it is drawn.

    Glorot's elements have a variance of 2 / (heads + channels).
    """
    length = attention_vector(layer).size(-1)
    return math.sqrt(length * 2.0 / (layer.heads + layer.out_channels))
