"""Finds out which kernels coming calls need, and has them compiled.

The calls are made with uninitialised tensors of the CPU. They go through the same
functions as real calls, so they launch the same kernels; `launch.py` compiles these in
background threads instead of running them.
"""

import torch
from torch import Tensor
from triton.runtime import driver

from tempergat.ops import gpu
from tempergat.ops.calls import Backward, Forward, Saved, Vectors
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
    z = inputs[0]
    # Many models at once take these in plain PyTorch.
    scores = coming.op == "gat" and coming.models == 1
    gate = coming.gate and coming.models == 1
    att = _empty(heads, channels)
    vectors = Vectors(att, att, att.new_empty(()) if coming.learnt else None, 1.0)
    if scores:
        gpu.kernels("scores").forward(z, vectors)
    elif coming.learnt and coming.models == 1:
        gpu.kernels("scores").divide(att, vectors.theta, 1.0)
    seed = _seeds(coming) if coming.dropout else None
    rate = _RATE if coming.dropout else 0.0
    attention = gpu.kernels(coming.op)
    weights = coming.weights
    call = Forward(inputs, seed, by_target, by_source, _SETTINGS, rate, weights)
    out, lse, _ = attention.forward(call)
    gates = gpu.kernels("gate")
    # As `one_node/layer.py` runs it, with the layer's bias.
    in_one = gate and not (coming.edge or weights) and out.dtype == torch.float32
    if gate:
        gates.forward(out, out, _empty(heads * channels) if in_one else None)
    if not coming.training:
        return
    if coming.op == "gat" and coming.models > 1:
        of_scores = (2 * coming.heads, coming.heads * channels)
        _take_outer(coming.nodes, coming.models, *of_scores)
    columns = None
    if in_one:
        # The targets' scores are kept apart in the table of GAT.
        score = inputs[2] if coming.op == "gat" else None
        columns = gates.backward_of_rows(
            out, None, out, out, lse, score, apart=coming.op == "gat"
        ).columns
    elif gate:
        gates.backward(out, None, out, out)
    saved = Saved(inputs, seed, out, lse, by_target, by_source)
    attention.backward(Backward(out, None, saved, _SETTINGS, rate))
    _end_step(coming, inputs, vectors, columns)
    if in_one:
        # Large graphs take one operation after the other.
        gates.forward(out, out)
        gates.backward(out, None, out, out)
        _end_step(coming, inputs, vectors, None)


def _end_step(
    coming: Coming,
    inputs: tuple[Tensor | None, ...],
    vectors: Vectors,
    columns: Tensor | None,
) -> None:
    """The gradients of attention vectors and temperature."""
    if coming.models > 1:
        return
    z, scores = inputs[0], gpu.kernels("scores")
    if coming.op == "gat":
        scores.backward(z, vectors, inputs[1:3], z, add=True, columns=columns)
    elif coming.learnt:
        att, theta = vectors.first, vectors.theta
        scores.divide_backward(att, att, theta, 1.0, columns)


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
    if coming.op == "gat":
        edge = _empty(1, heads) if coming.edge else None
        return z, _empty(nodes, heads), _empty(nodes, heads), edge
    edge = z[:1] if coming.edge else None
    return z, z, _empty(heads, coming.channels), edge, None, None


def _seeds(coming: Coming) -> Tensor:
    return _empty(coming.heads * coming.models, dtype=torch.int64)


def _empty(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.empty(shape, dtype=dtype)
