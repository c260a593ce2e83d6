"""Weighted sums of feature rows, for one model or for many at once.

They are what a sparse matrix does to features. A graph's edges are such a matrix: a
`vmap` over models becomes more models in one call, [nodes, models, channels].

Shape suffixes: S source nodes, T target nodes, E edges, K stored elements, R feature
rows, B models, C and O channels, H heads, V sets of weights or values (1 or B).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tempergat.ops.backend import find
from tempergat.ops.calls import Call, working_dtype
from tempergat.ops.graphs.graph import Graph
from tempergat.ops.graphs.rows import Rows
from tempergat.ops.reference import at_source, sum_by_target
from tempergat.ops.registration import ELSEWHERE, call, fold, needs_plain, register
from tempergat.ops.torch_internals import is_exporting


def product(rows: Rows, values_KV: Tensor, x_RBO: Tensor, **known: bool) -> Tensor:
    """Sums of rows of x, weighted per model: [rows, B, O], row after row.

    Args:
        rows: The elements by row.
        values_KV: Their values.
        x_RBO: The feature rows.
        known: What the kernels may use: ``in_order``, the elements are numbered in the
            order of the rows; ``skip_zeros``, many rows of x may be zero.
    """
    sets, (others, models, channels) = values_KV.size(1), x_RBO.shape
    # Models that share their values are treated as one model with all their channels.
    shape = (models, channels) if sets == models else (1, models * channels)
    x = x_RBO.flatten(1).contiguous().view(others, *shape)
    backend = find(Call("aggregate", ("cpu", "gpu"), (x, values_KV)))
    if backend is None:
        out = aggregate_plainly(rows, values_KV, x)
    else:
        out = backend.kernels("aggregate").run(rows, values_KV, x, **known)
    return out.view(-1, models, channels)


def aggregate_plainly(rows: Rows, values_KH: Tensor, x_RHC: Tensor) -> Tensor:
    """The backends' "aggregate" in plain PyTorch, one head after another."""
    values = values_KH[rows.position.long()].to(working_dtype(x_RHC.dtype))
    out = []
    for head in range(x_RHC.size(1)):
        message = values[:, head, None] * x_RHC[rows.other.long(), head]
        summed = torch.segment_reduce(
            message, "sum", offsets=rows.pointer.long(), axis=0, initial=0.0
        )
        out.append(summed)
    return torch.stack(out, 1).to(x_RHC.dtype)


def fold_values(values: Tensor, dim: int | None, models: int, size: int) -> Tensor:
    """Values for ``size`` times ``models`` weights."""
    if dim is None:
        return values if values.size(1) == 1 else values.repeat(1, size)
    return values.movedim(dim, 1).expand(-1, -1, models).flatten(1, 2)


def weighted_sum(graph: Graph, x: Tensor, weights: Tensor | None = None) -> Tensor:
    """The sum over each target's edges of ``weights[edge] * x[source]``, [num_dst, C].

    Args:
        graph: The graph.
        x: The sources' features, [num_src, C].
        weights: A weight for every edge, in the graph's order; None for 1.
    """
    if needs_plain() or is_exporting():
        messages = at_source(graph, x)
        if weights is not None:
            messages = messages * weights.unsqueeze(-1)
        return sum_by_target(graph, messages)[: graph.num_dst]
    if weights is None:
        weights = x.new_ones(graph.src.size(0))
    rows = (*graph.by_target[:3], *graph.by_source[:3])
    out: Tensor = call("weighted_sum", x.unsqueeze(1), weights.unsqueeze(1), *rows)
    return out.squeeze(1)


def _run(x_SBC: Tensor, weights_EV: Tensor, *rows: Tensor) -> Tensor:
    pointer, source, position = rows[:3]
    return product(Rows(pointer, source, position, position), weights_EV, x_SBC)


def _shape(x: Tensor, weights: Tensor, pointer: Tensor, *_: Tensor) -> Tensor:
    return x.new_empty(pointer.size(0) - 1, *x.shape[1:])


def _save(ctx: Any, inputs: Any, output: Any) -> None:
    x, weights, *rows = inputs
    ctx.wanted = (x.requires_grad, weights.requires_grad)
    ctx.save_for_backward(x if ctx.wanted[1] else None, weights, *rows)


def _gradient(ctx: Any, dout_TBC: Tensor) -> tuple[Tensor | None, ...]:
    x_SBC, weights_EV, *rows = ctx.saved_tensors
    dx = dweights = None
    if ctx.wanted[0]:
        # The same sum over the edges of each source.
        dx = call("weighted_sum", dout_TBC, weights_EV, *rows[3:], *rows[:3])
    if ctx.wanted[1]:
        pointer, source, position = rows[:3]
        slots = torch.arange(source.size(0), device=source.device, dtype=pointer.dtype)
        target = torch.searchsorted(pointer, slots, right=True) - 1
        by_slot_EB = (dout_TBC[target] * x_SBC[source.long()]).sum(-1)
        if weights_EV.size(1) == 1:
            by_slot_EB = by_slot_EB.sum(1, keepdim=True)
        by_slot_EB = by_slot_EB.to(weights_EV.dtype)
        zeros = by_slot_EB.new_zeros(weights_EV.size(0), by_slot_EB.size(1))
        dweights = zeros.index_copy(0, position.long(), by_slot_EB)
    return dx, dweights, *[None] * 6


def _fold(info: Any, in_dims: Any, x: Tensor, weights: Tensor, *rows: Tensor) -> Any:
    size = info.batch_size
    x = fold(x, in_dims[0], 1, size)
    weights = fold_values(weights, in_dims[1], x.size(1) // size, size)
    return call("weighted_sum", x, weights, *rows).unflatten(1, (size, -1)), 1


_ROWS = ", ".join(
    f"Tensor {side}_{part}"
    for side in ("target", "source")
    for part in ("pointer", "other", "position")
)
register(
    f"weighted_sum(Tensor x, Tensor weights, {_ROWS}) -> Tensor",
    {ELSEWHERE: _run},
    shapes=_shape,
    save=_save,
    gradient=_gradient,
    fold=_fold,
)
