"""Weighted sums over the edges of each target, for one model or for many at once.

A `vmap` over models becomes more models in one call: [nodes, models, channels].

Shape suffixes: S source nodes, T target nodes, E edges, B models, C channels, V sets of
weights (1 or B).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tempergat.ops.features.sparse import fold_values, product
from tempergat.ops.graph import Graph, Rows
from tempergat.ops.reference import at_source, sum_by_target
from tempergat.ops.registration import ELSEWHERE, call, fold, needs_plain, register
from tempergat.ops.torch_internals import is_exporting


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
