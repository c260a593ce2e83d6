"""Gates and attention vectors that serve as controls; no layer of the library has them.

Each takes the place of the `FeatureGate` or the `Temperature` of an attention layer, so
the layer's kernels run it, and so do all seeds at once.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from tempergat.nn import FeatureGate, Temperature
from tempergat.ops import Graph, gat


class ConstantGate(FeatureGate):
    r"""A gate :math:`g = \sigma(b)` with one number per channel, for all nodes.

    It reads no features. The next linear map could take it over, so it changes how a
    layer is optimised and not what it can express.
    """

    def __init__(self, bias_init: float = 0.0) -> None:
        super().__init__("post", bias_init)

    def add_to(
        self,
        layer: Any,
        in_channels: int | tuple[int, int],
        width: int,
        share_sides: bool = False,
    ) -> None:
        """Registers the gate's numbers on the layer, in place of a linear map."""
        super().add_to(layer, in_channels, width, share_sides)
        layer.lin_gate = _ConstantLogit(width, self.bias_init)

    def maps(self, layer: Any) -> list[Any]:
        """No linear map."""
        return []

    def output_logit(self, layer: Any, x_dst: Any) -> Tensor:
        """The logit of every channel, [1, width]."""
        logit: Tensor = layer.lin_gate.bias
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


class NeighbourGate(FeatureGate):
    r"""A gate :math:`g_i = \sigma(W_g m_i + b_g)` fed by the neighbours' mean.

    It has the parameters of the gate on the output, but :math:`m_i` is the mean of the
    neighbours' features, without those of node :math:`i` itself. For a node without
    neighbours it is :math:`\sigma(b_g)`.

    Args:
        neighbours: The edges without self-loops.
        bias_init: Initial value of the gate's bias.
    """

    def __init__(self, neighbours: Graph, bias_init: float = 0.0) -> None:
        super().__init__("post", bias_init)
        self._neighbours = neighbours
        degree = neighbours.by_target.pointer.diff()
        self._is_alone = (degree == 0).unsqueeze(-1)

    def gate_output(
        self, layer: Any, out: Tensor, logit: Tensor, in_use: Tensor | None = None
    ) -> Tensor:
        """Gates by the mean over the neighbours of their logits."""
        # The gate's map is linear: the mean of the logits is the logit of the mean.
        score = torch.zeros(out.size(0), out.size(1), device=out.device)
        mean, _ = gat(self._neighbours, logit.view_as(out), score, score)
        rows = torch.where(self._is_alone, layer.lin_gate.bias, mean.flatten(1))
        return super().gate_output(layer, out, rows, in_use)


class FixedNorm(Temperature):
    r"""Attention vectors of fixed norm: only their direction is learned.

    The logits of a head are computed from :math:`c \, a / \lVert a \rVert`, where
    :math:`c` is about the norm of :math:`a` at the start of training. A temperature can
    then not be replaced by another norm of :math:`a`.

    Args:
        kind: As in `Temperature`.
        init_temp: As in `Temperature`.
    """

    @property
    def is_fixed(self) -> bool:
        """Refuses the shortcuts of layers that divide by a temperature alone."""
        return True

    def divide(self, layer: Any, x: Tensor) -> Tensor:
        """Attention vectors at their fixed norm, over T.

        Args:
            layer: The layer.
            x: The layer's attention vectors, [..., heads, channels].
        """
        whole = attention_vector(layer)
        norm = whole.norm(dim=-1, keepdim=True)
        return super().divide(layer, x * (fixed_norm(layer) / norm))


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
