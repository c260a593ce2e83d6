"""The gradients of a layer by differentiable operations, for second derivatives."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tempergat.ops import attention
from tempergat.ops.one_node.records import LayerOptions, LayerTensors


def gradients(
    given: LayerTensors,
    options: LayerOptions,
    dout: Tensor,
    dtotal: Tensor | None,
    wanted: tuple[bool, ...],
) -> list[Tensor | None]:
    """The gradients of all tensors, which can be differentiated again.

    Args:
        given: The layer's tensors.
        options: What else it is called with.
        dout: The gradient of the output.
        dtotal: That of the tensor whose elements add up to the sum of the gate.
        wanted: Which gradients are needed.
    """
    out, gate = _forward(given, options)
    outputs, upstream = [out], [dout]
    if gate is not None and dtotal is not None:
        if dtotal.shape != gate.shape:
            # The kernels' partial sums, each of a block of elements.
            size = options.kernels("gate").BLOCK
            dtotal = dtotal.repeat_interleave(size)[: gate.numel()].view_as(gate)
        outputs, upstream = [out, gate], [dout, dtotal]
    needed = [k for k, need in enumerate(wanted) if need]
    leaves: Any = [given[k] for k in needed]
    options_of_grad = {"create_graph": True, "allow_unused": True}
    found = torch.autograd.grad(outputs, leaves, upstream, **options_of_grad)
    results: list[Tensor | None] = [None] * len(given)
    for k, gradient in zip(needed, found, strict=True):
        results[k] = gradient
    return results


def _forward(
    given: LayerTensors, options: LayerOptions
) -> tuple[Tensor, Tensor | None]:
    """The layer's output and its gate, in ops that have second derivatives."""
    x, (heads, channels) = given.x, given.att.shape[-2:]
    z = F.linear(x, given.weight, given.weight_bias).view(-1, heads, channels)
    att, att_dst = given.att, given.att_dst
    if given.theta is not None:
        temperature = (F.softplus(given.theta) + options.number).view(-1, 1)
        att = att / temperature
        att_dst = None if att_dst is None else att_dst / temperature
    if options.attention == "gat":
        assert att_dst is not None
        inputs = (z, (z * att).sum(-1), (z * att_dst).sum(-1))
    else:
        z_dst = z
        if given.weight_dst is not None:
            z_dst = F.linear(x, given.weight_dst, given.weight_dst_bias).view_as(z)
        inputs = (z, z_dst, att.squeeze(0))
    out, _ = attention.attend(
        options.attention,
        options.graph,
        *inputs,
        dropout=options.dropout,
        dropout_seed=options.seed,
        negative_slope=options.negative_slope,
    )
    out, gate = out.flatten(1), None
    if given.gate_weight is not None:
        gate = torch.sigmoid(F.linear(x, given.gate_weight, given.gate_bias))
        out = out * gate
    return out if given.bias is None else out + given.bias, gate
