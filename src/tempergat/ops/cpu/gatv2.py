"""GATv2's attention by the C++ kernels; the mathematics is in ops/README.md."""

import torch
from torch import Tensor

from tempergat.ops.calls import Backward, Forward
from tempergat.ops.cpu.call import KernelCall
from tempergat.ops.reference import divide_by_temperature, temperature_of


def forward(call: Forward) -> tuple[Tensor, Tensor, Tensor]:
    """Output [T, H, C], log-sum-exp [T, H] and weights [E, H] (or no rows of them)."""
    z_src, z_dst, att, edge, edge_x, edge_map, theta = call.inputs
    att = divide_by_temperature(att, theta)
    (slope,) = call.settings
    kernel = KernelCall(z_src, slope, call.dropout, call.dropout_seed)
    kernel.add_features(z_src=z_src, z_dst=z_dst, edge=edge)
    kernel.add_dense(att=att)
    kernel.add_edge_map(edge_x, edge_map)
    return kernel.run_forward("gatv2_forward", call)


def backward(call: Backward) -> tuple[Tensor, ...]:
    """The gradients of all inputs; without rows where they are absent."""
    saved = call.saved
    z_src, z_dst, att, edge, edge_x, edge_map, theta = saved.inputs
    temperature = None if theta is None else temperature_of(theta)
    if temperature is not None:
        att = att / temperature.view(-1, 1)
    assert saved.by_source is not None
    (slope,) = call.settings
    kernel = KernelCall(z_src, slope, call.dropout, saved.dropout_seed)
    kernel.add_edges("by_target", saved.by_target)
    kernel.add_edges("by_source", saved.by_source)
    kernel.add_features(z_src=z_src, z_dst=z_dst, edge=edge, dout=call.dout)
    kernel.add_dense(att=att, lse=saved.lse, dweights=call.dweights)
    heads, channels = att.shape
    dz_src, dz_dst = z_src.new_empty(z_src.shape), z_dst.new_empty(z_dst.shape)
    datt, dedge = att.new_empty(att.shape), z_dst.new_empty(0, heads, channels)
    kernel.add_features(dz_src=dz_src, dz_dst=dz_dst)
    kernel.add_dense(datt=datt)
    if edge is not None:
        # A padded edge has gradient 0.
        dedge = edge.new_zeros(edge.shape)
        kernel.add_features(dedge=dedge)
    dedge_x, dedge_map = att.new_empty(0, 0), att.new_empty(heads, channels, 0)
    if edge_x is not None:
        dedge_x, dedge_map = (
            edge_x.new_zeros(edge_x.shape),
            att.new_empty(edge_map.shape),
        )
        kernel.add_edge_map(edge_x, edge_map)
        kernel.add_dense(dedge_x=dedge_x, dedge_map=dedge_map)
    # Two numbers per head, one bit per channel.
    size = heads * (2 * att.element_size() + (channels + 7) // 8)
    kernel.add_records(saved.by_target, size)
    kernel.run("gatv2_backward")
    dtheta = att.new_empty(0)
    if theta is not None and temperature is not None:
        datt, dtheta = _divide_backward(datt, att, theta, temperature)
    return dz_src, dz_dst, datt, dedge, dedge_x, dedge_map, dtheta


def _divide_backward(
    dout: Tensor, divided: Tensor, theta: Tensor, temperature: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of the vector and of theta, in autograd's order of operations."""
    temperature = temperature.view(-1, 1)
    product = dout.neg() * (divided / temperature)
    dtemperature = product.sum(-1) if theta.dim() else product.sum()
    dtheta = torch.ops.aten.softplus_backward(dtemperature, theta, 1, 20)
    return dout / temperature, dtheta
