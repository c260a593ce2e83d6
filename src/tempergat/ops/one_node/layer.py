"""A whole layer on a small graph: linear maps, attention, gate and bias.

Forward and backward are one Python function each. With one node of autograd for every
step of the layer, a small graph takes longer for these nodes than for the work.
"""

from __future__ import annotations

import types
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Parameter

from tempergat.ops.attention_checks import check_dropout
from tempergat.ops.backend import find
from tempergat.ops.calls import Call
from tempergat.ops.graph import Graph
from tempergat.ops.one_node import gat, gate, gatv2, plain
from tempergat.ops.one_node.records import Attended, LayerOptions, LayerTensors
from tempergat.ops.registration import refuse_tangents
from tempergat.ops.torch_internals import (
    SingleLevelFunction,
    any_requires_grad,
    in_dispatch_mode,
    in_forward_mode,
    in_transform,
    is_tracing,
)

_ATTENTIONS: dict[str, types.ModuleType] = {"gat": gat, "gatv2": gatv2}
_PLAIN_TYPES = frozenset((Tensor, Parameter, type(None)))
# The most numbers in the projected features. On a CPU those of a few molecules; on a
# GPU more memory is needed than with many nodes, which matters for large graphs.
_SMALL = {"cpu": 1 << 15, "cuda": 1 << 23}
_DTYPES = {"cpu": (torch.float32, torch.float64), "cuda": (torch.float32,)}
_COUNT = len(LayerTensors._fields)
# Where the gradients of some tensors stand; the options come first.
_X, _WEIGHT, _WEIGHT_DST, _GATE_WEIGHT, _GATE_BIAS, _BIAS = (
    1 + LayerTensors._fields.index(name)
    for name in ("x", "weight", "weight_dst", "gate_weight", "gate_bias", "bias")
)


def layer_as_one_node(
    attention: str,
    graph: Graph,
    tensors: LayerTensors,
    *,
    number: float,
    negative_slope: float,
    dropout: float,
    dropout_seed: Tensor | None,
) -> tuple[Tensor, Tensor | None] | None:
    """A layer on a small graph, in eager code.

    Args:
        attention: "gat" or "gatv2".
        graph: The graph, with the same nodes as sources and targets.
        tensors: Input and parameters.
        number: 1.0, or what is added to a learnt temperature.
        negative_slope: LeakyReLU's slope below zero.
        dropout: Rate of dropout on the attention weights.
        dropout_seed: One int64 seed per head, needed when ``dropout`` > 0.

    Returns:
        The output [N, H * C], and a tensor whose elements add up to the sum of the
        gate; None if the layer cannot be computed in this way.
    """
    kernels = _find_kernels(attention, graph, tensors)
    if kernels is None:
        return None
    if dropout != 0.0:
        check_dropout(dropout, dropout_seed, tensors.att.size(1))
    options = LayerOptions(
        attention,
        graph,
        number,
        negative_slope,
        dropout,
        dropout_seed if dropout > 0.0 else None,
        kernels,
        tensors.x.is_cuda,
    )
    if torch.is_grad_enabled() and any_requires_grad(*tensors):
        out, total = _Layer.apply(options, *tensors)
    else:
        out, total, _, _ = _forward(tensors, options)
    return out, total


def _find_kernels(attention: str, graph: Graph, tensors: LayerTensors) -> Any:
    if is_tracing() or in_transform() or in_dispatch_mode() or in_forward_mode():
        return None
    x, att, theta = tensors.x, tensors.att, tensors.theta
    rows, heads, width = x.size(0), att.size(1), att.size(1) * att.size(2)
    place, dtype, device = x.device.type, x.dtype, x.get_device()
    if not 0 < rows * width <= _SMALL.get(place, 0) or graph.in_use is not None:
        return None
    if graph.num_src != rows or graph.num_dst != rows:
        return None
    if dtype not in _DTYPES[place] or torch.is_autocast_enabled(place):
        return None
    if not _PLAIN_TYPES.issuperset(map(type, tensors)):
        return None
    for t in tensors:
        if t is not None and (t.dtype != dtype or t.get_device() != device):
            return None
    # Kernels trust the shapes. Those of the maps' biases are checked by torch.
    for t in (tensors.weight, tensors.weight_dst, tensors.gate_weight, tensors.bias):
        if t is not None and t.size(0) != width:
            return None
    for t in (att, tensors.att_dst):
        if t is not None and not (t.shape == att.shape and t.is_contiguous()):
            return None
    if theta is not None and theta.shape not in ((), (heads,)):
        return None
    if attention == "gat" and tensors.weight_dst is not None:
        # GAT's kernels take the scores of both sides from one map.
        return None
    chosen = find(Call(attention, ("cpu", "gpu"), (att,), graph))
    return None if chosen is None else chosen.kernels


def _forward(
    given: LayerTensors, options: LayerOptions
) -> tuple[Tensor, Tensor | None, Attended, Tensor | None]:
    """Output, sum of the gate, and what backward needs of attention and of the gate."""
    x, (heads, channels) = given.x, given.att.shape[-2:]
    z = F.linear(x, given.weight, given.weight_bias).view(-1, heads, channels)
    z_dst = None
    if given.weight_dst is not None:
        z_dst = F.linear(x, given.weight_dst, given.weight_dst_bias).view_as(z)
    elif options.attention == "gatv2":
        z_dst = z
    attended = _ATTENTIONS[options.attention].forward(given, options, z, z_dst)
    out = attended.out.view(x.size(0), -1)
    if given.gate_weight is None:
        return out if given.bias is None else out + given.bias, None, attended, None
    logit = F.linear(x, given.gate_weight, given.gate_bias)
    out, total, kept = gate.forward(given, options, logit, out)
    return out, total, attended, kept


class _Layer(SingleLevelFunction):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, options: LayerOptions, *tensors: Any) -> Any:
        out, total, attended, kept = _forward(LayerTensors(*tensors), options)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors, *attended, kept)
        ctx.options = options
        return out, total

    @staticmethod
    def backward(ctx: Any, dout: Tensor | None, dtotal: Tensor | None = None) -> Any:
        if in_forward_mode():
            refuse_tangents((dout, dtotal))
        saved, options, wanted = ctx.saved_tensors, ctx.options, ctx.needs_input_grad
        given = LayerTensors(*saved[:_COUNT])
        attended, kept = Attended(*saved[_COUNT:-1]), saved[-1]
        if dout is None:
            dout = torch.zeros_like(attended.out).flatten(1)
        if torch.is_grad_enabled():
            found = plain.gradients(given, options, dout, dtotal, wanted[1:])
            return None, *found
        if kept is None:
            gated = gate.GateGradients(dout, dout.reshape(attended.out.shape))
        else:
            gated = gate.backward(options, attended, kept, dout, dtotal)
        found = _ATTENTIONS[options.attention].backward(given, options, attended, gated)
        if found.columns is not None:
            dbias, dgate_bias = found.columns.flatten(1)
            dbias = dbias if wanted[_BIAS] else None
        else:
            dbias = dout.sum(0) if wanted[_BIAS] else None
            dgate_bias = gated.logit.sum(0) if wanted[_GATE_BIAS] else None
        dz, dz_dst = found.z.flatten(1), found.z_dst
        if dz_dst is not None:
            dz_dst = dz_dst.flatten(1)
            if given.weight_dst is None:
                dz, dz_dst = dz.add_(dz_dst), None
        dweights: list[Tensor | None] = []
        x, dx = given.x, None
        for d, weight, place in (
            (gated.logit, given.gate_weight, _GATE_WEIGHT),
            (dz_dst, given.weight_dst, _WEIGHT_DST),
            (dz, given.weight, _WEIGHT),
        ):
            if weight is None:
                dweights.append(None)
                continue
            dweights.append(torch.mm(d.t(), x) if wanted[place] else None)
            if wanted[_X]:
                # In the order in which autograd would add them up.
                part = torch.mm(d, weight)
                dx = part if dx is None else dx.add_(part)
        dgate_weight, dweight_dst, dweight = dweights
        return (
            None,
            dx,
            dweight,
            dz.sum(0) if wanted[_WEIGHT + 1] else None,
            dweight_dst,
            dz_dst.sum(0) if wanted[_WEIGHT_DST + 1] else None,
            found.att,
            found.att_dst,
            found.theta,
            dgate_weight,
            dgate_bias,
            dbias,
        )
