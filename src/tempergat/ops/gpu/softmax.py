# mypy: allow-untyped-calls, allow-untyped-decorators
# mypy: disable-error-code="no-untyped-def, assignment"
"""The softmax over a row's edges, computed while they are read; see ops/README.md."""

import functools
from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from tempergat.ops.calls import Forward
from tempergat.ops.gpu.common import (
    Dropout,
    Tile,
    contiguous_or_none,
    dropout_arguments,
    exp,
    factors_of_edges,
    load_merge,
    load_work,
    store_row,
)
from tempergat.ops.gpu.launching.launch import divide_up, launch, power_of_two
from tempergat.ops.gpu.schedule import Schedule, Work, schedule
from tempergat.ops.graphs.graph import Rows


@triton.jit
def add_edges(
    max_logit, denominator, weighted_sum, new_max, logits, rows_j, factors,
    UNROLL: tl.constexpr, SCALED: tl.constexpr,
):  # fmt: skip
    """One step of the softmax: adds UNROLL groups of edges to a row's sums.

    max_logit, denominator and new_max, the maximum with the new logits, are [E, H];
    weighted_sum is [E, H, C]; logits and factors are tuples of [E, H], rows_j of
    [E, H, C].
    """
    # A logit of minus infinity has weight 0, even when it comes first.
    finite_max = tl.where(new_max == -float("inf"), 0.0, new_max)
    rescale = exp(max_logit - finite_max)
    denominator *= rescale
    weighted_sum *= rescale[:, :, None]
    for k in tl.static_range(UNROLL):
        weight = exp(logits[k] - finite_max)
        denominator += weight
        if SCALED:
            weight *= factors[k]
        weighted_sum += weight[:, :, None] * rows_j[k].to(tl.float32)
    return new_max, denominator, weighted_sum


@triton.jit
def _merge_lanes(max_logit, denominator, weighted_sum):
    """Merges the softmax of the E edges that lie side by side; E is 1 afterwards."""
    row_max = tl.max(max_logit, axis=0, keep_dims=True)
    finite_max = tl.where(row_max == -float("inf"), 0.0, row_max)
    rescale = exp(max_logit - finite_max)
    return (
        row_max,
        tl.sum(rescale * denominator, axis=0, keep_dims=True),
        tl.sum(rescale[:, :, None] * weighted_sum, axis=0, keep_dims=True),
    )


@triton.jit
def store_sum(
    max_logit, denominator, weighted_sum, row, partial, width, cell, in_row,
    out_ptr, part_ptr,
):  # fmt: skip
    """Writes a weighted sum [E, H, C] of an item: of its row, or of a chunk.

    max_logit and denominator are [E, H]. Returns them merged, [1, H].
    """
    if max_logit.shape[0] > 1:
        max_logit, denominator, weighted_sum = _merge_lanes(
            max_logit, denominator, weighted_sum
        )
    # A row without edges, or whose logits are all minus infinity, has sum 0.
    is_sum = (partial >= 0) | (denominator == 0.0)
    scale = 1.0 / tl.where(is_sum, 1.0, denominator)
    result = weighted_sum * scale[:, :, None]
    store_row(out_ptr, part_ptr, result, row, partial, width, cell, in_row)
    return max_logit, denominator


@triton.jit
def store_softmax(
    max_logit, denominator, weighted_sum, has_edges, row, partial,
    heads, in_heads, cell, in_row,
    out_ptr, lse_ptr, part_ptr, part_statistics_ptr, H, C: tl.constexpr,
):  # fmt: skip
    """Writes the result of an item: the row, or the partial result of a chunk.

    max_logit and denominator are [E, H], weighted_sum is [E, H, C].
    """
    max_logit, denominator = store_sum(
        max_logit, denominator, weighted_sum, row, partial, H * C, cell, in_row,
        out_ptr, part_ptr,
    )  # fmt: skip
    heads, in_heads = heads[None], in_heads[None]
    if partial >= 0:
        target = part_statistics_ptr + partial * (2 * H) + heads
        tl.store(target, max_logit, mask=in_heads)
        tl.store(target + H, denominator, mask=in_heads)
    else:
        is_empty = denominator == 0.0
        # Backward, the weight of a masked edge is exp(-inf) = 0.
        of_empty = tl.where(has_edges, float("inf"), 0.0)
        target = lse_ptr + (row * H + heads) * 2
        tl.store(target, tl.where(is_empty, of_empty, max_logit), mask=in_heads)
        log_sum = tl.where(is_empty, 0.0, tl.log(denominator))
        tl.store(target + 1, log_sum, mask=in_heads)


@triton.jit(do_not_specialize=["num_merges", "own_rows", "num_partials", "num_heads"])
def _merge_softmax_kernel(
    merges_ptr, part_ptr, part_statistics_ptr, out_ptr, lse_ptr,
    num_merges, own_rows, num_partials, num_heads,
    C: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    H = num_heads
    head = tl.program_id(1)
    row, first, count = load_merge(merges_ptr, num_merges, own_rows, num_partials)
    channels = tl.arange(0, BLOCK_C)
    max_logit = tl.full([BLOCK_K], -float("inf"), tl.float32)
    for k in range(0, count, BLOCK_K):
        ks = k + tl.arange(0, BLOCK_K)
        pointer = part_statistics_ptr + (first + ks) * (2 * H) + head
        max_logit = tl.maximum(max_logit, tl.load(pointer, ks < count, -float("inf")))
    row_max = tl.max(max_logit, axis=0)
    finite_max = tl.where(row_max == -float("inf"), 0.0, row_max)
    denominator = tl.zeros([BLOCK_K], tl.float32)
    weighted_sum = tl.zeros([BLOCK_C], tl.float32)
    for k in range(0, count, BLOCK_K):
        ks = k + tl.arange(0, BLOCK_K)
        pointer = part_statistics_ptr + (first + ks) * (2 * H) + head
        rescale = exp(tl.load(pointer, ks < count, -float("inf")) - finite_max)
        denominator += rescale * tl.load(pointer + H, ks < count, 0.0)
        offset = ((first + ks) * H + head)[:, None] * C + channels[None, :]
        inside = (ks < count)[:, None] & (channels < C)[None, :]
        part = tl.load(part_ptr + offset, mask=inside, other=0.0)
        weighted_sum += tl.sum(rescale[:, None] * part, axis=0)
    row_denominator = tl.sum(denominator, axis=0)
    is_empty = row_denominator == 0.0
    target = lse_ptr + (row * H + head) * 2
    tl.store(target, tl.where(is_empty, float("inf"), row_max))
    tl.store(target + 1, tl.where(is_empty, 0.0, tl.log(row_denominator)))
    target = out_ptr + (row * H + head) * C + channels
    result = tl.where(is_empty, 0.0, weighted_sum / row_denominator)
    tl.store(target, result.to(out_ptr.dtype.element_ty), mask=channels < C)


def merge_softmax(
    plan: Schedule,
    part: Tensor,
    part_statistics: Tensor,
    out: Tensor,
    lse: Tensor,
    copies: int,
) -> None:
    """Writes the rows that were cut, from the softmax of their chunks."""
    rows, heads, channels = out.shape
    merges = plan.merges.size(0)
    block = power_of_two(channels)
    constants = (channels, max(1, min(32, 2048 // block)), block)
    tensors = (plan.merges, part, part_statistics, out, lse)
    grid = (merges * copies, heads)
    numbers = (merges, rows // copies, plan.num_partials, heads)
    launch(_merge_softmax_kernel, grid, tensors, numbers, constants, warps=4)


@triton.jit(do_not_specialize=[*Work._fields, "threshold", "num_heads"])
def _normalise_kernel(
    items_ptr, position_ptr, edge_id_ptr, edge_weight_ptr, lse_ptr, weights_ptr,
    seed_ptr, num_items, own_rows, other_rows, num_edges, edge_step, num_partials,
    threshold, keep_scale, num_heads,
    BLOCK_E: tl.constexpr, BLOCK_H: tl.constexpr, DROPOUT: tl.constexpr,
    WEIGHT: tl.constexpr, COPIES: tl.constexpr,
):  # fmt: skip
    H = num_heads
    heads = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    row, start, end, _partial, copy = load_work(
        items_ptr, num_items, own_rows, num_partials, COPIES
    )
    lse = lse_ptr + (row * H + heads) * 2
    max_logit = tl.load(lse, mask=heads < H, other=0.0)
    log_sum = tl.load(lse + 1, mask=heads < H, other=0.0)
    for s in range(start, end, BLOCK_E):
        slots = s + tl.arange(0, BLOCK_E)
        valid = slots < end
        position = tl.load(position_ptr + slots, mask=valid, other=0).to(tl.int64)
        inside = valid[:, None] & (heads < H)[None, :]
        cell = (position + copy * num_edges)[:, None] * H + heads[None, :]
        logit = tl.load(weights_ptr + cell, mask=inside, other=0.0)
        weight = exp(logit - max_logit[None, :] - log_sum[None, :])
        if DROPOUT or WEIGHT:
            factor, _keep = factors_of_edges(
                edge_id_ptr, edge_weight_ptr, slots, valid,
                position + copy * edge_step, seed_ptr, heads, heads < H, H, copy,
                threshold, keep_scale, DROPOUT, WEIGHT,
            )  # fmt: skip
            weight *= factor
        tl.store(weights_ptr + cell, weight, mask=inside)


def _normalise(
    work: Work,
    items: Tensor,
    rows: Rows,
    lse: Tensor,
    weights: Tensor,
    dropout: Dropout,
    edge_weight: Tensor | None,
    copies: int,
) -> None:
    """Turns logits into weights in place, dropout and edge weights included."""
    _, _, position, edge_id = rows
    heads = weights.size(1)
    block = min(32, power_of_two(heads))
    grid = (copies * work.num_items, divide_up(heads, block))
    flags = (dropout.on, edge_weight is not None, copies > 1)
    constants = (max(1, 128 // block), block, *flags)
    tensors = (items, position, edge_id, edge_weight, lse, weights, dropout.seed)
    numbers = (*work, dropout.threshold, dropout.keep_scale, heads)
    launch(_normalise_kernel, grid, tensors, numbers, constants, warps=1)


def attend(
    kernel: Any,
    tile: Tile,
    call: Forward,
    inputs: Sequence[Tensor | None],
    edges: Sequence[Tensor | None],
    numbers: tuple[int | float, ...],
    flags: tuple[int, ...],
    width: int | None = None,
) -> tuple[Tensor, ...]:
    """Runs a forward pass.

    Args:
        kernel: The attention's kernel.
        tile: The part of a row its programs serve.
        call: The call; the last two of its inputs are the edges' weights and biases.
        inputs: The kernel's first pointers.
        edges: Those of them that have a row per edge.
        numbers: The kernel's numbers between those of dropout and the heads.
        flags: The kernel's constants between the tile and WEIGHT.
        width: Of what the kernel sums beside it over a row's edges, [T, H, width]; 0
            if there is nothing, None if the kernel has no such sum.

    Returns:
        The output [T, H, C], the log-sum-exp of each row as its maximum and the
        logarithm of the sum [T, H, 2], and the weights [E, H] (no rows if the call does
        not want them); then the second sum, if there is one.
    """
    pointer, other, position, edge_id = call.by_target
    copies, weights = call.copies, call.weights
    edge_weight, edge_bias = map(contiguous_or_none, call.inputs[-2:])
    dropout = dropout_arguments(call.dropout, call.dropout_seed)
    z = call.inputs[0]
    assert z is not None
    sources, heads, channels = z.shape
    rows = copies * (pointer.size(0) - 1)
    out = z.new_empty(rows, heads, channels)
    lse = z.new_empty(rows, heads, 2, dtype=torch.float32)
    # A padded edge, which no row has, has weight 0.
    stored = copies * other.size(0) if weights else 0
    logit = lse.new_zeros(stored, heads) if stored else lse.new_empty(0, heads)
    plan, edges = schedule(pointer), (*edges, edge_weight, edge_bias)
    work = plan.work(call.by_target, sources // copies, copies, edges)
    tile = tile.fit(work.is_short(copies), heads)
    new_partials = functools.partial(plan.new_partials, lse, copies=copies)
    part, part_statistics = new_partials(heads * channels), new_partials(2, heads)
    second: tuple[Any, ...] = () if width is None else (None, None)
    if width:
        second = lse.new_empty(rows, heads, width), new_partials(heads * width)
    launch(
        kernel,
        (copies * work.num_items, divide_up(heads, tile.heads)),
        (
            *inputs, edge_weight, edge_bias, plan.items, other, position, edge_id,
            out, lse, logit, part, part_statistics, *second, dropout.seed,
        ),
        (*work, dropout.threshold, dropout.keep_scale, *numbers, heads),
        (
            *tile.constants(heads, channels), *flags, edge_weight is not None,
            edge_bias is not None, weights, dropout.on, copies > 1,
        ),
        tile.warps,
    )  # fmt: skip
    merge_softmax(plan, part, part_statistics, out, lse, copies)
    if width:
        merge_softmax(plan, second[1], part_statistics, second[0], lse, copies)
    if weights:
        rest = (lse, logit, dropout, edge_weight, copies)
        _normalise(work, plan.items, call.by_target, *rest)
    return (out, lse, logit, second[0]) if width else (out, lse, logit)
