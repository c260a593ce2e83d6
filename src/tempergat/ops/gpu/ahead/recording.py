"""Finds out which kernels coming calls need, and has them compiled.

The calls are made with uninitialised tensors of the CPU. They go through the same
functions as real calls, so they launch the same kernels; `launch.py` compiles these in
background threads instead of running them.
"""

import torch
from torch import Tensor
from triton.runtime import driver

from tempergat.ops import gpu
from tempergat.ops.calls import Backward, Forward, Saved
from tempergat.ops.gpu.ahead import Coming
from tempergat.ops.gpu.launch import recording
from tempergat.ops.gpu.schedule import (
    Schedule,
    keep_schedule,
    keep_slots_of_edges,
)
from tempergat.ops.graph import Rows

_SETTINGS = (0.2,)
_RATE = 0.5


def compile_kernels(coming: Coming, device: int) -> None:
    """Starts to compile what the coming calls need, in the order of their need.

    Args:
        coming: The calls.
        device: The number of the CUDA device.
    """
    with torch.cuda.device(device):
        # Made once, before several threads ask for it.
        driver.active.get_current_device()
    with recording(device):
        if coming.op in ("gat", "gatv2"):
            _attend(coming)
        else:
            _multiply_or_drop(coming)


def _multiply_or_drop(coming: Coming) -> None:
    """What many models at once need outside attention."""
    models, channels, dtype = coming.models, coming.channels, coming.dtype
    if coming.op == "outer":
        _take_outer(coming.nodes, models, coming.heads, channels)
        return
    if coming.op == "dropout":
        for sets in {1, models}:
            x = _empty(1, sets, channels, dtype=dtype)
            gpu.kernels("dropout").run(x, _seeds(coming), _RATE)
        return
    run = gpu.kernels("aggregate").run
    x = _empty(1, models, channels, dtype=dtype)
    run(_rows(), _empty(1, models, dtype=dtype), x, in_order=True)
    # In evaluation all models share the values.
    x = x.view(1, 1, models * channels)
    run(_rows(), _empty(1, 1, dtype=dtype), x, in_order=True)
    if coming.training:
        x = x.view(1, models, channels)
        run(_rows(), _empty(1, models, dtype=dtype), x, skip_zeros=True)


def _take_outer(nodes: int, models: int, outs: int, features: int) -> None:
    """The gradient of weights, if not torch computes it."""
    dout, x = _empty(nodes, models, outs), _empty(nodes, models, features)
    if gpu.is_faster_outer(dout.shape, x.shape):
        gpu.kernels("outer").run(dout, x)


def _attend(coming: Coming) -> None:
    """A layer's step: new graph, scores, attention, gate; then backward."""
    heads, channels = coming.heads * coming.models, coming.channels
    edge_index = _empty(2, 1, dtype=torch.int64)
    gpu.kernels("edges").group_edges(edge_index, (1, 1), 1, coming.training)
    by_target, by_source = _rows(), _rows() if coming.training else None
    if by_source is not None:
        keep_slots_of_edges(by_source.position, by_source.position)
    inputs = _inputs(coming)
    seed = _seeds(coming) if coming.dropout else None
    rate = _RATE if coming.dropout else 0.0
    attention, gates = gpu.kernels(coming.op), gpu.kernels("gate")
    weights = coming.weights
    call = Forward(inputs, seed, by_target, by_source, _SETTINGS, rate, weights)
    out, lse, _, *state = attention.forward(call)
    # Many models at once take it in plain PyTorch.
    gate = coming.gate and coming.models == 1
    flat = out.flatten(1)
    if gate:
        bias = _empty(heads * channels, dtype=coming.dtype)
        gates.forward(flat, flat, bias)
    if not coming.training:
        return
    saved = Saved(inputs, seed, out, lse, tuple(state), by_target, by_source)
    table = None
    if gate:
        more = attention.statistics_of(saved)
        table = gates.backward_of_rows(flat, None, flat, out, lse, **more).statistics
    attention.backward(Backward(out, None, saved, _SETTINGS, rate), table)


def _rows() -> Rows:
    """One edge, in a row that is cut in two, so that partial results are merged."""
    pointer, *others = (torch.zeros(n, dtype=torch.int32) for n in (2, 1, 1, 1))
    items, merges = pointer.new_empty(2, 4), pointer.new_empty(1, 3)
    keep_schedule(pointer, Schedule(items, merges, 2))
    return Rows(pointer, *others)


def _inputs(coming: Coming) -> tuple[Tensor | None, ...]:
    # Memory that is not written to takes no space.
    nodes, heads = coming.nodes, coming.heads * coming.models
    z = _empty(nodes, heads, coming.channels, dtype=coming.dtype)
    att, theta = _empty(heads, coming.channels), None
    if coming.learnt:
        # The temperatures of many models are given head by head.
        theta = _empty() if coming.models == 1 else _empty(heads)
    if coming.op == "gat":
        edge_score = _empty(1, heads) if coming.edge else None
        return z, att, att, None, edge_score, theta
    edge = z[:1] if coming.edge else None
    return z, z, att, edge, None, None, theta


def _seeds(coming: Coming) -> Tensor:
    return _empty(coming.heads * coming.models, dtype=torch.int64)


def _empty(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.empty(shape, dtype=dtype)
