"""What a layer is called with, and what its attention gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from torch import Tensor

from tempergat.ops.graph import Graph


class LayerTensors(NamedTuple):
    """The tensors of a layer; None for one that it does not have.

    Attributes:
        x: The input, [N, features].
        weight: The linear map of the sources, [H * C, features].
        weight_bias: Its bias.
        weight_dst: GATv2's linear map of the targets, if it is another one.
        weight_dst_bias: Its bias.
        att: GAT's attention vector of the sources, or GATv2's only one, [1, H, C].
        att_dst: GAT's attention vector of the targets.
        theta: None for a fixed temperature; else T is ``softplus(theta) + number``.
        gate_weight: The linear map of the gate, [H * C, features].
        gate_bias: Its bias.
        bias: What is added to the output, [H * C].
    """

    x: Tensor
    weight: Tensor
    weight_bias: Tensor | None
    weight_dst: Tensor | None
    weight_dst_bias: Tensor | None
    att: Tensor
    att_dst: Tensor | None
    theta: Tensor | None
    gate_weight: Tensor | None
    gate_bias: Tensor | None
    bias: Tensor | None


class LayerOptions(NamedTuple):
    """What a layer is called with beside its tensors.

    Attributes:
        attention: "gat" or "gatv2".
        graph: The graph; its sources and targets are the same nodes.
        number: The fixed temperature, or what is added to a learnt one.
        negative_slope: LeakyReLU's slope below zero.
        dropout: Rate of dropout on the attention weights.
        seed: One int64 seed per head where there is dropout.
        kernels: Gives the module with the kernels of an op.
        on_gpu: Whether they are those of the GPU.
    """

    attention: str
    graph: Graph
    number: float
    negative_slope: float
    dropout: float
    seed: Tensor | None
    kernels: Callable[[str], Any]
    on_gpu: bool


class Attended(NamedTuple):
    """Attention on projected features, and what its backward pass needs.

    Attributes:
        z: The projected features of the sources, [N, H, C].
        z_dst: GATv2's of the targets; None for GAT.
        out: The output, [N, H, C].
        lse: The log-sum-exp of each target.
        first: GAT's scores of the sources, or GATv2's attention vector over T.
        second: GAT's scores of the targets, or T where GATv2 needs it again.
    """

    z: Tensor
    z_dst: Tensor | None
    out: Tensor
    lse: Tensor
    first: Tensor
    second: Tensor | None


class AttentionGradients(NamedTuple):
    """The gradients of what `Attended` was computed from.

    ``columns`` is the sum of the partial sums that the gate's backward pass leaves.
    """

    z: Tensor
    z_dst: Tensor | None
    att: Tensor
    att_dst: Tensor | None
    theta: Tensor | None
    columns: Tensor | None = None
