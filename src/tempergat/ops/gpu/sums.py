# mypy: allow-untyped-calls, allow-untyped-decorators
# mypy: disable-error-code="no-untyped-def, assignment"
"""Sums over a row's edges, merged where a row was cut; and backward's statistics."""

import triton
import triton.language as tl
from torch import Tensor

from tempergat.ops.gpu.common import (
    load_item,
    tile_of_row,
)
from tempergat.ops.gpu.launch import divide_up, launch, power_of_two
from tempergat.ops.gpu.schedule import Schedule
from tempergat.ops.gpu.tiles import choose_tile


@triton.jit(do_not_specialize=["width"])
def _merge_sum_kernel(
    merges_ptr, part_ptr, out_ptr, width,
    BLOCK_K: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    merge = merges_ptr + tl.program_id(0).to(tl.int64) * 3
    row = tl.load(merge).to(tl.int64)
    first = tl.load(merge + 1).to(tl.int64)
    count = tl.load(merge + 2)
    columns = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    total = tl.zeros([BLOCK_D], part_ptr.dtype.element_ty)
    for k in range(0, count, BLOCK_K):
        ks = k + tl.arange(0, BLOCK_K)
        inside = (ks < count)[:, None] & (columns < width)[None, :]
        offset = (first + ks)[:, None] * width + columns[None, :]
        total += tl.sum(tl.load(part_ptr + offset, mask=inside, other=0.0), axis=0)
    target = out_ptr + row * width + columns
    tl.store(target, total.to(out_ptr.dtype.element_ty), mask=columns < width)


def merge_sum(plan: Schedule, part: Tensor, out: Tensor) -> None:
    """Writes the rows that were cut as the sum of their partial results."""
    if plan.num_partials == 0:
        return
    width = part.size(1)
    block = min(128, power_of_two(width))
    grid = (plan.merges.size(0), divide_up(width, block))
    tensors, constants = (plan.merges, part, out), (2048 // block, block)
    launch(_merge_sum_kernel, grid, tensors, (width,), constants, warps=4)


@triton.jit(do_not_specialize=["num_heads"])
def _segment_sum_kernel(
    items_ptr, index_ptr, value_ptr, factor_ptr, part_ptr, out_ptr, num_heads,
    BLOCK_E: tl.constexpr, BLOCK_H: tl.constexpr, FACTOR: tl.constexpr,
):  # fmt: skip
    H = num_heads
    row, start, end, partial = load_item(items_ptr, tl.program_id(0).to(tl.int64))
    heads = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    total = tl.zeros([BLOCK_E, BLOCK_H], tl.float32)
    for s in range(start, end, BLOCK_E):
        slots = s + tl.arange(0, BLOCK_E)
        position = tl.load(index_ptr + slots, mask=slots < end, other=0).to(tl.int64)
        inside = (slots < end)[:, None] & (heads < H)[None, :]
        offset = position[:, None] * H + heads[None, :]
        value = tl.load(value_ptr + offset, mask=inside, other=0.0)
        if FACTOR:
            value *= tl.load(factor_ptr + offset, mask=inside, other=0.0)
        total += value
    result = tl.sum(total, axis=0)
    if partial >= 0:
        tl.store(part_ptr + partial * H + heads, result, mask=heads < H)
    else:
        tl.store(out_ptr + row * H + heads, result, mask=heads < H)


def segment_sum(
    plan: Schedule,
    num_rows: int,
    index: Tensor,
    value: Tensor,
    factor: Tensor | None = None,
) -> Tensor:
    """The sum over each row's slots of ``value[index]`` (times ``factor``), [rows, H].

    ``index`` says for every slot where its edge is in ``value`` and ``factor``.
    """
    heads = value.size(1)
    out = value.new_empty(num_rows, heads)
    part = plan.room(out, heads)
    block = min(32, power_of_two(heads))
    grid = (plan.items.size(0), divide_up(heads, block))
    constants = (max(1, 128 // block), block, factor is not None)
    tensors = (plan.items, index, value, factor, part, out)
    launch(_segment_sum_kernel, grid, tensors, (heads,), constants, warps=1)
    merge_sum(plan, part, out)
    return out


@triton.jit(do_not_specialize=["num_rows", "num_heads"])
def _statistics_kernel(
    dout_ptr, out_ptr, lse_ptr, weight_term_ptr, score_ptr, statistics_ptr,
    num_rows, num_heads,
    KNOWN_HEADS: tl.constexpr, C: tl.constexpr, BLOCK_R: tl.constexpr,
    BLOCK_H: tl.constexpr, BLOCK_C: tl.constexpr, EXACT: tl.constexpr,
    WEIGHT_TERM: tl.constexpr, SCORE: tl.constexpr, APART: tl.constexpr,
):  # fmt: skip
    H, heads, in_heads, cell, in_row = tile_of_row(
        num_heads, KNOWN_HEADS, C, BLOCK_H, BLOCK_C, EXACT
    )
    rows = tl.program_id(0).to(tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R)
    inside = (rows < num_rows)[:, None, None] & in_row[None]
    offset = rows[:, None, None] * (H * C) + cell[None]
    dout = tl.load(dout_ptr + offset, mask=inside, other=0.0).to(tl.float32)
    out = tl.load(out_ptr + offset, mask=inside, other=0.0).to(tl.float32)
    delta = tl.sum(dout * out, axis=2)
    inside = (rows < num_rows)[:, None] & in_heads[None, :]
    offset = rows[:, None] * H + heads[None, :]
    if WEIGHT_TERM:
        delta += tl.load(weight_term_ptr + offset, mask=inside, other=0.0)
    max_logit = tl.load(lse_ptr + offset * 2, mask=inside, other=0.0)
    log_sum = tl.load(lse_ptr + offset * 2 + 1, mask=inside, other=0.0)
    LSE: tl.constexpr = 2 if APART else 1
    COLUMNS: tl.constexpr = LSE + 2 if SCORE else LSE + 1
    target = statistics_ptr + rows[:, None] * (COLUMNS * H) + heads[None, :]
    if APART:
        tl.store(target, max_logit, mask=inside)
        tl.store(target + H, log_sum, mask=inside)
    else:
        tl.store(target, max_logit + log_sum, mask=inside)
    tl.store(target + LSE * H, delta, mask=inside)
    if SCORE:
        score = tl.load(score_ptr + offset, mask=inside, other=0.0)
        tl.store(target + (LSE + 1) * H, score, mask=inside)


def statistics(
    dout: Tensor,
    out: Tensor,
    lse: Tensor,
    weight_term: Tensor | None,
    score: Tensor | None,
    *,
    apart: bool,
) -> Tensor:
    """What backward needs of each target, float32, [T, 2 to 4, H].

    In this order: lse, as two numbers if they stay apart, delta (and score). delta is
    ``<dout, out>`` per head, plus ``weight_term``, the sum over a row's edges of
    ``weight * dweight``.
    """
    rows, heads, channels = dout.shape
    columns = 2 + apart + (score is not None)
    table = lse.new_empty(rows, columns, heads)
    if table.numel() == 0:
        return table
    tile = choose_tile(heads, channels, dout.element_size(), 256, 256)
    block = max(1, 1024 // (tile.heads * tile.channels))
    grid = (divide_up(rows, block), divide_up(heads, tile.heads))
    known, _, _, *blocks, _, exact = tile.constants(heads, channels)
    flags = (exact, weight_term is not None, score is not None, apart)
    constants = (known, channels, block, *blocks, *flags)
    tensors = (dout, out, lse, weight_term, score, table)
    launch(_statistics_kernel, grid, tensors, (rows, heads), constants, warps=4)
    return table
