"""Attention by dot products by the C++ kernels; the mathematics is in ops/README.md."""

from torch import Tensor

from tempergat.ops.calls import Backward, Forward, working_dtype
from tempergat.ops.cpu.call import KernelCall
from tempergat.ops.cpu.library import PLACE


def forward(call: Forward) -> tuple[Tensor | None, ...]:
    """What `KernelCall.run_forward` returns, and sums of edge features [T, H, D].

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
    return *kernel.run_forward("dot_product_forward", call), edge_sum


def backward(call: Backward) -> tuple[Tensor | None, ...]:
    """The gradients of all inputs; None where they are absent or not wanted."""
    saved = call.saved
    value, key, query, edge_x, edge_map, temperature, *_ = saved.inputs
    edges = (saved.by_target, saved.by_source)
    dropout = (call.dropout, saved.dropout_seed)
    kernel = KernelCall(value, *edges, 0.0, *dropout, call.copies)
    _add_inputs(kernel, saved.inputs, *call.settings)
    dvalue, dkey, dquery = map(kernel.new_features, (value, key, query))
    dlogit, dbias = kernel.add_dout(call)
    kernel.add_features(dz_src=dvalue, dkey=dkey, dz_dst=dquery)
    kernel.add_dense(lse=saved.lse, dweights=call.dweights)
    dedge_x = dedge_map = dtemperature = None
    if temperature is not None and call.wanted[5]:
        dtemperature = kernel.new_parameter(temperature)
        kernel.add_dense(dtheta=dtemperature)
    if edge_x is not None and call.wanted[3]:
        dedge_x = kernel.new_edges(edge_x)
        kernel.add_dense(dedge_x=dedge_x)
    if edge_map is not None and call.wanted[4]:
        dedge_map = kernel.new_parameter(edge_map)
        kernel.add_dense(dedge_map=dedge_map, edge_sum=saved.state[0])
    edge_gradients = kernel.add_edge_gradients(call)
    # Two numbers per head.
    kernel.add_records(2 * value.size(1) * saved.lse.element_size())
    kernel.run("dot_product_backward")
    dedge_map, dtemperature, dbias = kernel.totals(dedge_map, dtemperature, dbias)
    own = (dvalue, dkey, dquery, dedge_x, dedge_map, dtemperature)
    return *own, *edge_gradients, dlogit, dbias


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
    kernel.add_edge_map(edge_x, edge_map)
