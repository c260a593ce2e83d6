"""Finds out which kernels later calls need, and has them compiled.

The calls are made with uninitialised tensors of the CPU. They go through the same
functions as real calls, so they launch the same kernels; `launch.py` compiles these in
background threads instead of running them.
"""

import torch
from torch import Tensor
from triton.runtime import driver

from tempergat.ops import gpu
from tempergat.ops.calls import Backward, Forward, Saved
from tempergat.ops.gpu.launching.launch import compile_only
from tempergat.ops.gpu.launching.precompile import CompileRequest
from tempergat.ops.gpu.schedule import Schedule, keep_schedule, keep_slots_of_edges
from tempergat.ops.graphs.graph import Rows

_SETTINGS = (0.2,)
_RATE = 0.5


def compile_kernels(request: CompileRequest, device: int) -> None:
    """Starts to compile what was asked for, in the order of its need.

    Args:
        request: What was asked for.
        device: The number of the CUDA device.
    """
    with torch.cuda.device(device):
        # Made once, before several threads ask for it.
        driver.active.get_current_device()
    with compile_only(device):
        launch_kernels(request)


def launch_kernels(request: CompileRequest) -> None:
    """Makes the calls; needs no device, but `compile_only` around it."""
    if request.op in ("gat", "gatv2", "dot_product"):
        _attend(request)
    else:
        _multiply_or_drop(request)


def _multiply_or_drop(request: CompileRequest) -> None:
    """What many models at once need outside attention."""
    models, channels, dtype = request.models, request.channels, request.dtype
    if request.op == "outer":
        dout = _empty(request.nodes, models, request.heads)
        x = _empty(request.nodes, models, channels)
        # Otherwise torch computes it.
        if gpu.is_faster_outer(dout.shape, x.shape):
            gpu.kernels("outer").run(dout, x)
        return
    if request.op == "dropout":
        for sets in {1, models}:
            x = _empty(1, sets, channels, dtype=dtype)
            gpu.kernels("dropout").run(x, _seeds(request), _RATE)
        return
    run = gpu.kernels("aggregate").run
    x = _empty(1, models, channels, dtype=dtype)
    run(_rows(), _empty(1, models, dtype=dtype), x, in_order=True)
    # In evaluation all models share the values.
    x = x.view(1, 1, models * channels)
    run(_rows(), _empty(1, 1, dtype=dtype), x, in_order=True)
    if request.training:
        x = x.view(1, models, channels)
        run(_rows(), _empty(1, models, dtype=dtype), x, skip_zeros=True)


def _attend(request: CompileRequest) -> None:
    """A layer's step: new graph, scores, attention, gate; then backward."""
    heads, channels = request.heads * request.models, request.channels
    edge_index = _empty(2, 1, dtype=torch.int64)
    gpu.kernels("edges").group_edges(edge_index, (1, 1), 1, request.training)
    by_target, by_source = _rows(), _rows() if request.training else None
    if by_source is not None:
        keep_slots_of_edges(by_source.position, by_source.position)
    inputs = _inputs(request)
    seed = _seeds(request) if request.dropout else None
    rate = _RATE if request.dropout else 0.0
    attention, gates = gpu.kernels(request.op), gpu.kernels("gate")
    weights = request.weights
    call = Forward(inputs, seed, by_target, by_source, 1, _SETTINGS, rate, weights)
    out, lse, _, *state = attention.forward(call)
    # Many models at once take it in plain PyTorch.
    gate = request.gate and request.models == 1
    flat = out.flatten(1)
    if gate:
        bias = _empty(heads * channels, dtype=request.dtype)
        gates.forward(flat, flat, bias)
    if not request.training:
        return
    saved = Saved(inputs, seed, out, lse, tuple(state), by_target, by_source)
    table = None
    if gate:
        options = attention.statistics_options(saved)
        table = gates.backward_of_rows(flat, None, flat, out, lse, **options)[2]
    wanted = (True,) * len(inputs)
    backward = Backward(out, None, saved, 1, _SETTINGS, rate, wanted)
    attention.backward(backward, table)


def _rows() -> Rows:
    """One edge, in a row that is cut in two, so that partial results are merged."""
    pointer, *others = (torch.zeros(n, dtype=torch.int32) for n in (2, 1, 1, 1))
    items, merges = pointer.new_empty(2, 4), pointer.new_empty(1, 3)
    keep_schedule(pointer, Schedule(items, merges, 2))
    return Rows(pointer, *others)


def _inputs(request: CompileRequest) -> tuple[Tensor | None, ...]:
    # Memory that is not written to takes no space.
    nodes, heads = request.nodes, request.heads * request.models
    z = _empty(nodes, heads, request.channels, dtype=request.dtype)
    att, theta = _empty(heads, request.channels), None
    if request.learnt:
        # The temperatures of many models are given head by head.
        theta = _empty() if request.models == 1 else _empty(heads)
    if request.op == "gat":
        edge_score = _empty(1, heads) if request.edge else None
        return z, att, att, None, edge_score, theta, None, None
    if request.op == "dot_product":
        # Features of edges, of any width, are left to the first call.
        temperature = None if theta is None else theta.expand(heads)
        return z, z, z, None, None, temperature, None, None
    edge = z[:1] if request.edge else None
    return z, z, att, edge, None, None, theta, None, None


def _seeds(request: CompileRequest) -> Tensor:
    seeds = _empty(request.heads * request.models, dtype=torch.int64)
    if request.models == 1:
        # Many models at once make theirs in plain PyTorch.
        gpu.kernels("dropout").seeds(_empty(dtype=torch.int64), seeds)
    return seeds


def _empty(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.empty(shape, dtype=dtype)
