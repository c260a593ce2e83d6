"""Gates and attention vectors that serve as controls; no layer of the library has them.

`put_control` gives them to attention layers, so the layers' kernels run them, and so do
all seeds at once.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from tempergat.nn import AttentionLayer, GateLinear
from tempergat.ops import Graph, weighted_sum


class ConstantGate(nn.Module):
    r"""A gate :math:`g = \sigma(b)` with one number per channel, for all nodes.

    It takes the place of a gate's linear map and reads no features. The next linear map
    could take it over, so it changes how a layer is optimised and not what it can
    express.
    """

    def __init__(self, lin_gate: GateLinear) -> None:
        super().__init__()
        self.bias_init = lin_gate.bias_init
        self.bias = nn.Parameter(torch.empty(lin_gate.out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.constant_(self.bias, self.bias_init)

    def forward(self, x: Tensor) -> Tensor:
        """The logit of every channel, [1, width]."""
        return self.bias.unsqueeze(0)


class NeighbourGate(GateLinear):
    r"""A gate :math:`g_i = \sigma(W_g m_i + b_g)` fed by the neighbours' mean.

    It has the parameters of the gate on the output and takes the place of its linear
    map, but :math:`m_i` is the mean of the neighbours' features, without those of node
    :math:`i` itself. For a node without neighbours it is :math:`\sigma(b_g)`.

    Attributes:
        neighbours: The edges without self-loops.
    """

    neighbours: Graph

    def forward(self, x: Tensor) -> Tensor:
        """The mean over the neighbours of their logits."""
        # The map is linear: the mean of the logits is the logit of the mean.
        total = weighted_sum(self.neighbours, super().forward(x))
        degree = self.neighbours.by_target.pointer.diff().unsqueeze(-1)
        mean = total / degree.clamp(min=1)
        return torch.where(degree == 0, self.bias, mean)


class FixedNorm(AttentionLayer):
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
        return super().divide_by_fixed_temperature(x * (fixed_norm(self) / norm))


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
