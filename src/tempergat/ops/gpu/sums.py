# mypy: allow-untyped-calls, allow-untyped-decorators
# mypy: disable-error-code="no-untyped-def, assignment"
"""Sums over a row's edges, merged where a row was cut; and backward's statistics."""

import triton
import triton.language as tl
from torch import Tensor

from tempergat.ops.gpu.common import cells_of_tile, load_item
from tempergat.ops.gpu.launch import divide_up, launch, power_of_two
from tempergat.ops.gpu.schedule import Schedule
from tempergat.ops.gpu.tiles import choose_tile


@triton.jit
def _merge_sum_kernel(
    merges_ptr, part_ptr, out_ptr, WIDTH: tl.constexpr,
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
        inside = (ks < count)[:, None] & (columns < WIDTH)[None, :]
        offset = (first + ks)[:, None] * WIDTH + columns[None, :]
        total += tl.sum(tl.load(part_ptr + offset, mask=inside, other=0.0), axis=0)
    target = out_ptr + row * WIDTH + columns
    tl.store(target, total.to(out_ptr.dtype.element_ty), mask=columns < WIDTH)


def merge_sum(plan: Schedule, part: Tensor, out: Tensor) -> None:
    """Writes the rows that were cut as the sum of their partial results."""
    width = part.size(1)
    block = min(128, power_of_two(width))
    grid = (plan.merges.size(0), divide_up(width, block))
    constants = (width, 2048 // block, block)
    launch(_merge_sum_kernel, grid, (plan.merges, part, out), (), constants, warps=4)


@triton.jit
def _segment_sum_kernel(
    items_ptr, index_ptr, value_ptr, factor_ptr, part_ptr, out_ptr,
    H: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_H: tl.constexpr,
    FACTOR: tl.constexpr,
):  # fmt: skip
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
    part = value.new_empty(plan.num_partials, heads)
    block = min(32, power_of_two(heads))
    grid = (plan.items.size(0), divide_up(heads, block))
    constants = (heads, max(1, 128 // block), block, factor is not None)
    tensors = (plan.items, index, value, factor, part, out)
    launch(_segment_sum_kernel, grid, tensors, (), constants, warps=1)
    merge_sum(plan, part, out)
    return out


@triton.jit(do_not_specialize=["num_rows"])
def _statistics_kernel(
    dout_ptr, out_ptr, lse_ptr, weight_term_ptr, score_ptr, statistics_ptr, num_rows,
    H: tl.constexpr, C: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_H: tl.constexpr,
    BLOCK_C: tl.constexpr, WEIGHT_TERM: tl.constexpr, SCORE: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0).to(tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R)
    heads = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    cell, in_row = cells_of_tile(heads, tl.arange(0, BLOCK_C), H, C, False)
    inside = (rows < num_rows)[:, None, None] & in_row[None]
    offset = rows[:, None, None] * (H * C) + cell[None]
    dout = tl.load(dout_ptr + offset, mask=inside, other=0.0).to(tl.float32)
    out = tl.load(out_ptr + offset, mask=inside, other=0.0).to(tl.float32)
    delta = tl.sum(dout * out, axis=2)
    inside = (rows < num_rows)[:, None] & (heads < H)[None, :]
    offset = rows[:, None] * H + heads[None, :]
    if WEIGHT_TERM:
        delta += tl.load(weight_term_ptr + offset, mask=inside, other=0.0)
    lse = tl.load(lse_ptr + offset, mask=inside, other=0.0)
    COLUMNS: tl.constexpr = 3 if SCORE else 2
    target = statistics_ptr + rows[:, None] * (COLUMNS * H) + heads[None, :]
    tl.store(target, lse, mask=inside)
    tl.store(target + H, delta, mask=inside)
    if SCORE:
        score = tl.load(score_ptr + offset, mask=inside, other=0.0)
        tl.store(target + 2 * H, score, mask=inside)


def statistics(
    dout: Tensor,
    out: Tensor,
    lse: Tensor,
    weight_term: Tensor | None,
    score: Tensor | None,
) -> Tensor:
    """What backward needs of each target: lse, delta (and score), [T, 2 or 3, H].

    delta is ``<dout, out>`` per head, plus ``weight_term``, the sum over the row's
    edges of ``weight * dweight``.
    """
    rows, heads, channels = dout.shape
    columns = 2 if score is None else 3
    table = lse.new_empty(rows, columns, heads)
    if table.numel() == 0:
        return table
    tile = choose_tile(heads, channels, dout.element_size(), 256, 256)
    block = max(1, 1024 // (tile.heads * tile.channels))
    grid = (divide_up(rows, block), divide_up(heads, tile.heads))
    flags = (weight_term is not None, score is not None)
    constants = (heads, channels, block, tile.heads, tile.channels, *flags)
    tensors = (dout, out, lse, weight_term, score, table)
    launch(_statistics_kernel, grid, tensors, (rows,), constants, warps=4)
    return table
