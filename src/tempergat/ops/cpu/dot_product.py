"""Attention by dot products by the C++ kernels; the mathematics is in ops/README.md."""

import torch
from torch import Tensor

from tempergat.ops.calls import Backward, Forward, working_dtype
from tempergat.ops.cpu.call import KernelCall
from tempergat.ops.cpu.library import PLACE


def forward(call: Forward) -> tuple[Tensor | None, ...]:
    """Output [T, H, C], log-sum-exp [T, H], weights [E, H], sums of features [T, H, D].

    There are no sums without edge features.
    """
    value, _, query, _, edge_map, *_ = call.inputs
    edges, dropout = (call.by_target, None), (call.dropout, call.dropout_seed)
    kernel = KernelCall(value, *edges, 0.0, *dropout, call.copies)
    _add_inputs(kernel, call.inputs, *call.settings)
    edge_sum = None
    if edge_map is not None:
        work = working_dtype(value.dtype)
        edge_sum = query.new_empty((*query.shape[:2], edge_map.size(2)), dtype=work)
        kernel.add_dense(edge_sum=edge_sum)
    out, lse, weights = kernel.run_forward("dot_product_forward", call)
    if edge_map is not None and edge_sum is not None:
        _add_push(out, edge_sum, edge_map)
    return out, lse, weights, edge_sum


def backward(call: Backward) -> tuple[Tensor | None, ...]:
    """The gradients of all inputs; None where they are absent or not wanted."""
    saved = call.saved
    value, key, query, edge_x, edge_map, temperature, *_ = saved.inputs
    edges = (saved.by_target, saved.by_source)
    dropout = (call.dropout, saved.dropout_seed)
    kernel = KernelCall(value, *edges, 0.0, *dropout, call.copies)
    _add_inputs(kernel, saved.inputs, *call.settings)
    dvalue, dkey, dquery = map(kernel.new_features, (value, key, query))
    kernel.add_features(dout=call.dout, dz_src=dvalue, dkey=dkey, dz_dst=dquery)
    kernel.add_dense(lse=saved.lse, dweights=call.dweights)
    dedge_x = dedge_map = dpulled = dtemperature = None
    if temperature is not None and call.wanted[5]:
        dtemperature = kernel.new_parameter(temperature)
        kernel.add_dense(dtheta=dtemperature)
    if edge_x is not None and edge_map is not None:
        dpulled = edge_map.new_empty((*query.shape[:2], edge_map.size(2)))
        pulled_dout = _pull_back(call.dout, edge_map)
        kernel.add_dense(pulled_dout=pulled_dout, dpulled_query=dpulled)
        if call.wanted[3]:
            dedge_x = kernel.new_edges(edge_x)
            kernel.add_dense(dedge_x=dedge_x)
    edge_gradients = kernel.add_edge_gradients(call)
    # Two numbers per head.
    kernel.add_records(2 * value.size(1) * saved.lse.element_size())
    kernel.run("dot_product_backward")
    if edge_map is not None and dpulled is not None:
        _add_push(dquery, dpulled, edge_map)
        dedge_map = _outer(query, dpulled) + _outer(call.dout, *saved.state)
    (dtemperature,) = kernel.totals(dtemperature)
    own = (dvalue, dkey, dquery, dedge_x, dedge_map, dtemperature)
    return *own, *edge_gradients


def _add_inputs(
    kernel: KernelCall, inputs: tuple[Tensor | None, ...], scale: float
) -> None:
    """What both passes need beside values, edges and dropout."""
    _, key, query, edge_x, edge_map, temperature, *_ = inputs
    kernel.add_features(key=key, z_dst=query)
    kernel.values[PLACE["scale"]] = scale
    if temperature is not None:
        kernel.add_dense(theta=temperature)
        kernel.values[PLACE["thetas"]] = temperature.numel()
    if query is not None and edge_map is not None:
        kernel.add_edge_map(edge_x, edge_map)
        kernel.add_dense(pulled_query=_pull_back(query, edge_map))


# Products of nodes with the linear map of edge features. They are in the map's type, in
# autocast too: it leaves operations alone that write into a given tensor.


def _pull_back(x_THC: Tensor, edge_map_HCD: Tensor) -> Tensor:
    """``edge_map^T x`` of every node and head, [T, H, D]."""
    x_HTC = x_THC.to(edge_map_HCD.dtype).transpose(0, 1)
    out_THD = edge_map_HCD.new_empty((*x_THC.shape[:2], edge_map_HCD.size(2)))
    torch.bmm(x_HTC, edge_map_HCD, out=out_THD.transpose(0, 1))
    return out_THD


def _add_push(out_THC: Tensor, sum_THD: Tensor, edge_map_HCD: Tensor) -> None:
    """Adds ``edge_map sum`` to what every node and head has, in place."""
    if out_THC.dtype != sum_THD.dtype:
        out_THC += _pull_back(sum_THD, edge_map_HCD.mT)
    else:
        sum_HTD, map_HDC = sum_THD.transpose(0, 1), edge_map_HCD.mT
        out_THC.transpose(0, 1).baddbmm_(sum_HTD, map_HDC)


def _outer(x_THC: Tensor, sum_THD: Tensor) -> Tensor:
    """The sum over nodes of the outer products of two tables, [H, C, D]."""
    out_HCD = sum_THD.new_empty((*x_THC.shape[1:], sum_THD.size(2)))
    x_HCT = x_THC.to(sum_THD.dtype).permute(1, 2, 0)
    return torch.bmm(x_HCT, sum_THD.transpose(0, 1), out=out_HCD)
