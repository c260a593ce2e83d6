"""GATv2's attention with its temperature, without autograd."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from tempergat.ops.calls import Backward, Forward, Saved
from tempergat.ops.one_node.gate import GateGradients
from tempergat.ops.one_node.records import (
    Attended,
    AttentionGradients,
    LayerOptions,
    LayerTensors,
)


def forward(
    given: LayerTensors, options: LayerOptions, z: Tensor, z_dst: Tensor | None
) -> Attended:
    """The attention vector over the temperature, then attention."""
    att, temperature = given.att, None
    if given.theta is not None:
        if options.on_gpu:
            att = options.kernels("scores").divide(att, given.theta, options.number)
        else:
            # As `nn.Temperature.divide` does it, to the last bit.
            temperature = (F.softplus(given.theta) + options.number).view(-1, 1)
            att = att / temperature
    call = Forward(
        (z, z_dst, att.view(att.shape[-2:]), None, None, None),
        options.seed,
        options.graph.by_target,
        None,
        (options.negative_slope,),
        options.dropout,
        weights=False,
    )
    out, lse, _ = options.kernels("gatv2").forward(call)
    return Attended(z, z_dst, out, lse, att, temperature)


def backward(
    given: LayerTensors, options: LayerOptions, attended: Attended, gated: GateGradients
) -> AttentionGradients:
    """The gradients from that of the output."""
    divided, graph = attended.first, options.graph
    inputs = (attended.z, attended.z_dst, divided.view(divided.shape[-2:]))
    rows = graph.by_target, graph.by_source
    results = attended.out, attended.lse
    saved = Saved((*inputs, None, None, None), options.seed, *results, *rows)
    call = Backward(gated.out, None, saved, (options.negative_slope,), options.dropout)
    more = (gated.statistics,) if options.on_gpu else ()
    dz, dz_dst, datt, *_ = options.kernels("gatv2").backward(call, *more)
    datt, theta, dtheta, sums = datt.view(given.att.shape), given.theta, None, None
    if theta is not None and options.on_gpu:
        datt, dtheta, sums = options.kernels("scores").divide_backward(
            datt, given.att, theta, options.number, gated.columns
        )
    elif theta is not None and attended.second is not None:
        datt, dtheta = _divide_backward(datt, divided, theta, attended.second)
    elif gated.columns is not None:
        sums = gated.columns.sum(0)
    return AttentionGradients(dz, dz_dst, datt, None, dtheta, sums)


def _divide_backward(
    dout: Tensor, divided: Tensor, theta: Tensor, temperature: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of the vector and of theta, in autograd's order of operations."""
    product = dout.neg() * (divided / temperature)
    dims = (0, 2) if theta.dim() else (0, 1, 2)
    dtemperature = product.sum(dims).view(theta.shape)
    dtheta = torch.ops.aten.softplus_backward(dtemperature, theta, 1, 20)
    return dout / temperature, dtheta
