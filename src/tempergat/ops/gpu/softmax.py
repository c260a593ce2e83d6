# mypy: allow-untyped-calls, allow-untyped-decorators
# mypy: disable-error-code="no-untyped-def, assignment"
"""The softmax over a row's edges, computed while they are read; see ops/README.md."""

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
    keep_factor,
    load_item,
)
from tempergat.ops.gpu.launch import divide_up, launch, power_of_two
from tempergat.ops.gpu.schedule import Schedule, schedule
from tempergat.ops.graph import Rows


@triton.jit
def add_edges(
    max_logit, denominator, weighted_sum, new_max, logits, rows_j, factors,
    UNROLL: tl.constexpr, DROPOUT: tl.constexpr,
):  # fmt: skip
    """One step of the softmax: adds UNROLL groups of edges to a row's sums.

    max_logit, denominator and new_max, the maximum with the new logits, are [E, H];
    weighted_sum is [E, H, C]; logits and factors are tuples of [E, H], rows_j of
    [E, H, C].
    """
    # A logit of minus infinity has weight 0, even when it comes first.
    finite_max = tl.where(new_max == -float("inf"), 0.0, new_max)
    rescale = tl.exp(max_logit - finite_max)
    denominator *= rescale
    weighted_sum *= rescale[:, :, None]
    for k in tl.static_range(UNROLL):
        weight = tl.exp(logits[k] - finite_max)
        denominator += weight
        if DROPOUT:
            weight *= factors[k]
        weighted_sum += weight[:, :, None] * rows_j[k].to(tl.float32)
    return new_max, denominator, weighted_sum


@triton.jit
def _merge_lanes(max_logit, denominator, weighted_sum):
    """Merges the softmax of the E edges that lie side by side; [H], [H] and [H, C]."""
    row_max = tl.max(max_logit, axis=0)
    finite_max = tl.where(row_max == -float("inf"), 0.0, row_max)
    rescale = tl.exp(max_logit - finite_max[None, :])
    return (
        row_max,
        tl.sum(rescale * denominator, axis=0),
        tl.sum(rescale[:, :, None] * weighted_sum, axis=0),
    )


@triton.jit
def store_softmax(
    max_logit, denominator, weighted_sum, has_edges, row, partial,
    heads, in_heads, cell, in_row,
    out_ptr, lse_ptr, part_ptr, part_statistics_ptr, H, C: tl.constexpr,
):  # fmt: skip
    """Writes the result of an item: the row, or the partial result of a chunk.

    max_logit and denominator are [E, H], weighted_sum is [E, H, C].
    """
    max_logit, denominator, weighted_sum = _merge_lanes(
        max_logit, denominator, weighted_sum
    )
    if partial >= 0:
        tl.store(part_ptr + partial * (H * C) + cell, weighted_sum, mask=in_row)
        target = part_statistics_ptr + partial * (2 * H) + heads
        tl.store(target, max_logit, mask=in_heads)
        tl.store(target + H, denominator, mask=in_heads)
    else:
        result = tl.where(has_edges, weighted_sum / denominator[:, None], 0.0)
        max_logit = tl.where(has_edges, max_logit, 0.0)
        log_sum = tl.where(has_edges, tl.log(denominator), 0.0)
        result = result.to(out_ptr.dtype.element_ty)
        tl.store(out_ptr + row * (H * C) + cell, result, mask=in_row)
        target = lse_ptr + (row * H + heads) * 2
        tl.store(target, max_logit, mask=in_heads)
        tl.store(target + 1, log_sum, mask=in_heads)


@triton.jit(do_not_specialize=["num_heads"])
def _merge_softmax_kernel(
    merges_ptr, part_ptr, part_statistics_ptr, out_ptr, lse_ptr, num_heads,
    C: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    H = num_heads
    merge = merges_ptr + tl.program_id(0).to(tl.int64) * 3
    head = tl.program_id(1)
    row = tl.load(merge).to(tl.int64)
    first = tl.load(merge + 1).to(tl.int64)
    count = tl.load(merge + 2)
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
        rescale = tl.exp(tl.load(pointer, ks < count, -float("inf")) - finite_max)
        denominator += rescale * tl.load(pointer + H, ks < count, 0.0)
        offset = ((first + ks) * H + head)[:, None] * C + channels[None, :]
        inside = (ks < count)[:, None] & (channels < C)[None, :]
        part = tl.load(part_ptr + offset, mask=inside, other=0.0)
        weighted_sum += tl.sum(rescale[:, None] * part, axis=0)
    row_denominator = tl.sum(denominator, axis=0)
    target = lse_ptr + (row * H + head) * 2
    tl.store(target, row_max)
    tl.store(target + 1, tl.log(row_denominator))
    target = out_ptr + (row * H + head) * C + channels
    result = weighted_sum / row_denominator
    tl.store(target, result.to(out_ptr.dtype.element_ty), mask=channels < C)


def merge_softmax(
    plan: Schedule, part: Tensor, part_statistics: Tensor, out: Tensor, lse: Tensor
) -> None:
    """Writes the rows that were cut, from the softmax of their chunks."""
    _, heads, channels = out.shape
    block = power_of_two(channels)
    constants = (channels, max(1, min(32, 2048 // block)), block)
    tensors = (plan.merges, part, part_statistics, out, lse)
    grid = (plan.merges.size(0), heads)
    launch(_merge_softmax_kernel, grid, tensors, (heads,), constants, warps=4)


@triton.jit(do_not_specialize=["threshold", "num_heads"])
def _normalise_kernel(
    items_ptr, position_ptr, edge_id_ptr, lse_ptr, weights_ptr,
    seed_ptr, threshold, keep_scale, num_heads,
    BLOCK_E: tl.constexpr, BLOCK_H: tl.constexpr, DROPOUT: tl.constexpr,
):  # fmt: skip
    H = num_heads
    row, start, end, _ = load_item(items_ptr, tl.program_id(0).to(tl.int64))
    heads = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    lse = lse_ptr + (row * H + heads) * 2
    max_logit = tl.load(lse, mask=heads < H, other=0.0)
    log_sum = tl.load(lse + 1, mask=heads < H, other=0.0)
    for s in range(start, end, BLOCK_E):
        slots = s + tl.arange(0, BLOCK_E)
        position = tl.load(position_ptr + slots, mask=slots < end, other=0).to(tl.int64)
        inside = (slots < end)[:, None] & (heads < H)[None, :]
        target = weights_ptr + position[:, None] * H + heads[None, :]
        logit = tl.load(target, mask=inside, other=0.0)
        weight = tl.exp(logit - max_logit[None, :] - log_sum[None, :])
        if DROPOUT:
            edge_ids = tl.load(edge_id_ptr + slots, mask=slots < end, other=0)
            weight *= keep_factor(
                seed_ptr, heads, heads < H, edge_ids, threshold, keep_scale
            )
        tl.store(target, weight, mask=inside)


def normalise(
    plan: Schedule,
    rows: Rows,
    lse: Tensor,
    weights: Tensor,
    dropout: Dropout,
) -> None:
    """Turns logits into weights in place, the dropout mask included."""
    _, _, position, edge_id = rows
    heads = weights.size(1)
    block = min(32, power_of_two(heads))
    grid = (plan.items.size(0), divide_up(heads, block))
    constants = (max(1, 128 // block), block, dropout.on)
    tensors = (plan.items, position, edge_id, lse, weights, dropout.seed)
    numbers = (dropout.threshold, dropout.keep_scale, heads)
    launch(_normalise_kernel, grid, tensors, numbers, constants, warps=1)


def attend(
    kernel: Any, tile: Tile, call: Forward, flags: tuple[int, ...]
) -> tuple[Tensor, Tensor, Tensor]:
    """Runs a forward pass.

    Args:
        kernel: The attention's kernel.
        tile: The part of a row its programs serve.
        call: The call.
        flags: The kernel's constants between the tile and LOGIT.

    Returns:
        The output [T, H, C], the log-sum-exp of each row as its maximum and the
        logarithm of the sum [T, H, 2], and the weights [E, H] (no rows if the call does
        not want them).
    """
    pointer, other, position, edge_id = call.by_target
    (negative_slope,), weights = call.settings, call.weights
    inputs = [contiguous_or_none(x) for x in call.inputs]
    dropout = dropout_arguments(call.dropout, call.dropout_seed)
    z = inputs[0]
    assert z is not None
    rows, (_, heads, channels) = pointer.size(0) - 1, z.shape
    out = z.new_empty(rows, heads, channels)
    lse = z.new_empty(rows, heads, 2, dtype=torch.float32)
    # A padded edge, which no row has, has weight 0.
    edges = other.size(0) if weights else 0
    logit = lse.new_zeros(edges, heads) if edges else lse.new_empty(0, heads)
    plan = schedule(pointer)
    part = plan.new_partials(lse, heads * channels)
    part_statistics = plan.new_partials(lse, 2, heads)
    launch(
        kernel,
        (plan.items.size(0), divide_up(heads, tile.heads)),
        (
            *inputs, plan.items, other, position, edge_id,
            out, lse, logit, part, part_statistics, dropout.seed,
        ),
        (dropout.threshold, dropout.keep_scale, float(negative_slope), heads),
        (*tile.constants(heads, channels), *flags, weights, dropout.on),
        tile.warps,
    )  # fmt: skip
    merge_softmax(plan, part, part_statistics, out, lse)
    if weights:
        normalise(plan, call.by_target, lse, logit, dropout)
    return out, lse, logit
