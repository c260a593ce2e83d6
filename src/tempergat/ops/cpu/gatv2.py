"""GATv2's attention by the C++ kernels; the mathematics is in ops/README.md."""

import torch
from torch import Tensor
from torch.nn.functional import softplus

from tempergat.ops.calls import Backward, Forward
from tempergat.ops.cpu.call import KernelCall
from tempergat.ops.reference import EPSILON


def forward(call: Forward) -> tuple[Tensor | None, ...]:
    """What `KernelCall.run_forward` returns."""
    z_src, z_dst, att, edge, edge_x, edge_map, theta, *_ = call.inputs
    if theta is not None:
        att = att / _temperature(theta)
    (slope,) = call.settings
    edges, dropout = (call.by_target, None), (call.dropout, call.dropout_seed)
    kernel = KernelCall(z_src, *edges, slope, *dropout, call.copies)
    kernel.add_features(z_dst=z_dst, edge=edge)
    kernel.add_dense(att=att)
    kernel.add_edge_map(edge_x, edge_map)
    return kernel.run_forward("gatv2_forward", call)


def backward(call: Backward) -> tuple[Tensor | None, ...]:
    """The gradients of all inputs; None where they are absent."""
    saved = call.saved
    z_src, z_dst, att, edge, edge_x, edge_map, theta, *_ = saved.inputs
    temperature = None if theta is None else _temperature(theta)
    if temperature is not None:
        att = att / temperature
    (slope,) = call.settings
    edges = (saved.by_target, saved.by_source)
    dropout = (call.dropout, saved.dropout_seed)
    kernel = KernelCall(z_src, *edges, slope, *dropout, call.copies)
    kernel.add_features(z_dst=z_dst, edge=edge)
    dlogit, dbias = kernel.add_dout(call)
    kernel.add_dense(att=att, lse=saved.lse, dweights=call.dweights)
    heads, channels = att.shape
    dz_src, dz_dst = kernel.new_features(z_src), kernel.new_features(z_dst)
    datt = kernel.new_parameter(att)
    kernel.add_features(dz_src=dz_src, dz_dst=dz_dst)
    kernel.add_dense(datt=datt)
    dedge = dedge_x = dedge_map = dtheta = None
    if edge is not None:
        dedge = kernel.new_edges(edge)
        kernel.add_features(dedge=dedge)
    if edge_x is not None:
        dedge_x = kernel.new_edges(edge_x) if call.wanted[4] else None
        dedge_map = kernel.new_parameter(edge_map)
        kernel.add_edge_map(edge_x, edge_map)
        kernel.add_dense(dedge_x=dedge_x, dedge_map=dedge_map)
    edge_gradients = kernel.add_edge_gradients(call)
    # Two numbers per head, one bit per channel.
    size = heads * (2 * att.element_size() + (channels + 7) // 8)
    kernel.add_records(size)
    kernel.run("gatv2_backward")
    datt, dedge_map, dbias = kernel.totals(datt, dedge_map, dbias)
    if theta is not None and temperature is not None:
        datt, dtheta = _divide_backward(datt, att, theta, temperature)
    own = (dz_src, dz_dst, datt, dedge, dedge_x, dedge_map, dtheta)
    return *own, *edge_gradients, dlogit, dbias


def _temperature(theta: Tensor) -> Tensor:
    """T, [H, 1] or [1, 1]."""
    return softplus(theta).add_(EPSILON).view(-1, 1)


def _divide_backward(
    dout: Tensor, divided: Tensor, theta: Tensor, temperature: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of the vector and of theta, in autograd's order of operations."""
    product = dout.neg() * (divided / temperature)
    dtemperature = product.sum(-1) if theta.dim() else product.sum()
    dtheta = torch.ops.aten.softplus_backward(dtemperature, theta, 1, 20)
    return dout / temperature, dtheta
