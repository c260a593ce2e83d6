# mypy: allow-untyped-calls, allow-untyped-decorators
# mypy: disable-error-code="no-untyped-def, assignment"
"""Sums over a row's edges, merged where a row was cut; and backward's statistics."""

from collections.abc import Callable

import triton
import triton.language as tl
from torch import Tensor

from tempergat.ops.calls import Backward, Forward
from tempergat.ops.gpu.common import (
    choose_tile,
    load_item,
    load_merge,
    tile_of_row,
)
from tempergat.ops.gpu.launching.launch import divide_up, launch, power_of_two
from tempergat.ops.gpu.schedule import Schedule, Work, schedule


@triton.jit
def _merge_columns(
    row, first, count, part_ptr, out_ptr, columns, width,
    BLOCK_K: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Adds up some columns of a row's partial results."""
    total = tl.zeros([BLOCK_D], part_ptr.dtype.element_ty)
    for k in range(0, count, BLOCK_K):
        ks = k + tl.arange(0, BLOCK_K)
        inside = (ks < count)[:, None] & (columns < width)[None, :]
        offset = (first + ks)[:, None] * width + columns[None, :]
        total += tl.sum(tl.load(part_ptr + offset, mask=inside, other=0.0), axis=0)
    target = out_ptr + row * width + columns
    tl.store(target, total.to(out_ptr.dtype.element_ty), mask=columns < width)


@triton.jit(
    do_not_specialize=[
        "num_merges", "own_rows", "num_partials", "width", "second_width"
    ]
)  # fmt: skip
def _merge_sum_kernel(
    merges_ptr, part_ptr, out_ptr, second_part_ptr, second_ptr,
    num_merges, own_rows, num_partials, width, second_width,
    BLOCK_K: tl.constexpr, BLOCK_D: tl.constexpr, SECOND: tl.constexpr,
):  # fmt: skip
    row, first, count = load_merge(merges_ptr, num_merges, own_rows, num_partials)
    block = tl.program_id(1)
    lanes = tl.arange(0, BLOCK_D)
    first_blocks = tl.cdiv(width, BLOCK_D)
    if block < first_blocks:
        columns = block * BLOCK_D + lanes
        _merge_columns(
            row, first, count, part_ptr, out_ptr, columns, width, BLOCK_K, BLOCK_D
        )
    elif SECOND:
        columns = (block - first_blocks) * BLOCK_D + lanes
        _merge_columns(
            row, first, count, second_part_ptr, second_ptr, columns, second_width,
            BLOCK_K, BLOCK_D,
        )  # fmt: skip


def merge_sum(
    plan: Schedule,
    part: Tensor,
    out: Tensor,
    second: tuple[Tensor, Tensor] | None = None,
    copies: int = 1,
) -> None:
    """Writes the rows that were cut as the sum of their partial results.

    Args:
        plan: Says which rows were cut.
        part: The partial results, [partials, columns].
        out: Where their sums go.
        second: Other partial results of the same rows, and where their sums go.
        copies: How many copies the graph has.
    """
    if plan.num_partials == 0:
        return
    more = (None, None) if second is None else second
    widths = (part.size(1), 0 if second is None else second[0].size(1))
    block = min(128, power_of_two(widths[0]))
    blocks = sum(divide_up(width, block) for width in widths)
    tensors = (plan.merges, part, out, *more)
    constants = (2048 // block, block, second is not None)
    merges = plan.merges.size(0)
    numbers = (merges, out.size(0) // copies, plan.num_partials, *widths)
    launch(_merge_sum_kernel, (merges * copies, blocks), tensors, numbers, constants, 4)


@triton.jit(do_not_specialize=[*Work._fields, "total_items", "num_heads"])
def _segment_sum_kernel(
    items_ptr, index_ptr, via_ptr, value_ptr, factor_ptr, part_ptr, out_ptr,
    num_items, own_rows, other_rows, num_edges, edge_step, num_partials, total_items,
    num_heads,
    ROWS: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_H: tl.constexpr,
    FACTOR: tl.constexpr, VIA: tl.constexpr,
):  # fmt: skip
    H = num_heads
    heads = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    number = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    here = number < total_items
    number = tl.minimum(number, total_items - 1)
    copy = (number // num_items).to(tl.int64)
    row, start, end, partial = load_item(items_ptr, number - copy * num_items)
    end = tl.where(here, end, start)
    # [R, H] of short rows, one in each lane; [E, H] of one row's edges, side by side.
    LANES: tl.constexpr = BLOCK_E if ROWS == 1 else ROWS
    total = tl.zeros([LANES, BLOCK_H], tl.float32)
    for s in range(0, tl.max(end - start, axis=0), BLOCK_E):
        slots = start + s
        if ROWS == 1:
            slots = slots + tl.arange(0, BLOCK_E)
        valid = slots < end
        position = tl.load(index_ptr + slots, mask=valid, other=0).to(tl.int64)
        if VIA:
            position = tl.load(via_ptr + position, mask=valid, other=0).to(tl.int64)
        inside = valid[:, None] & (heads < H)[None, :]
        offset = (position + copy * num_edges)[:, None] * H + heads[None, :]
        value = tl.load(value_ptr + offset, mask=inside, other=0.0)
        if FACTOR:
            value *= tl.load(factor_ptr + offset, mask=inside, other=0.0)
        total += value
    if ROWS == 1:
        total = tl.sum(total, axis=0, keep_dims=True)
    inside = here[:, None] & (heads < H)[None, :]
    target = out_ptr + (row + copy * own_rows)[:, None] * H + heads[None, :]
    tl.store(target, total, mask=inside & (partial < 0)[:, None])
    target = part_ptr + (partial + copy * num_partials)[:, None] * H + heads[None, :]
    tl.store(target, total, mask=inside & (partial >= 0)[:, None])


def segment_sum(
    plan: Schedule,
    work: Work,
    index: Tensor,
    value: Tensor,
    factor: Tensor | None = None,
    via: Tensor | None = None,
    copies: int = 1,
) -> Tensor:
    """The sum over each row's slots of ``value[index]`` (times ``factor``), [rows, H].

    ``index`` says for every slot where its edge is in ``value`` and ``factor``; with
    ``via`` it is ``via[index]`` that says it.
    """
    heads = value.size(1)
    out = value.new_empty(copies * work.own_rows, heads)
    part = plan.new_partials(out, heads, copies=copies)
    block = min(32, power_of_two(heads))
    lanes, items = max(1, 128 // block), copies * work.num_items
    rows, edges = (lanes, 1) if work.is_short(copies) else (1, lanes)
    grid = (divide_up(items, rows), divide_up(heads, block))
    constants = (rows, edges, block, factor is not None, via is not None)
    tensors = (plan.items, index, via, value, factor, part, out)
    numbers = (*work, items, heads)
    launch(_segment_sum_kernel, grid, tensors, numbers, constants, warps=1)
    merge_sum(plan, part, out, copies=copies)
    return out


@triton.jit
def store_statistics(
    delta, rows, inside, heads, lse_ptr, score_ptr, statistics_ptr, H,
    SCORE: tl.constexpr, SPLIT_LSE: tl.constexpr,
):  # fmt: skip
    """Writes rows of the table that `statistics` returns; delta is [R, H]."""
    offset = rows[:, None] * H + heads[None, :]
    max_logit = tl.load(lse_ptr + offset * 2, mask=inside, other=0.0)
    log_sum = tl.load(lse_ptr + offset * 2 + 1, mask=inside, other=0.0)
    LSE: tl.constexpr = 2 if SPLIT_LSE else 1
    COLUMNS: tl.constexpr = LSE + 2 if SCORE else LSE + 1
    target = statistics_ptr + rows[:, None] * (COLUMNS * H) + heads[None, :]
    if SPLIT_LSE:
        tl.store(target, max_logit, mask=inside)
        tl.store(target + H, log_sum, mask=inside)
    else:
        tl.store(target, max_logit + log_sum, mask=inside)
    tl.store(target + LSE * H, delta, mask=inside)
    if SCORE:
        score = tl.load(score_ptr + offset, mask=inside, other=0.0)
        tl.store(target + (LSE + 1) * H, score, mask=inside)


@triton.jit(do_not_specialize=["num_rows", "num_heads"])
def _statistics_kernel(
    dout_ptr, out_ptr, lse_ptr, weight_term_ptr, score_ptr, statistics_ptr,
    num_rows, num_heads,
    KNOWN_HEADS: tl.constexpr, C: tl.constexpr, BLOCK_R: tl.constexpr,
    BLOCK_H: tl.constexpr, BLOCK_C: tl.constexpr, EXACT: tl.constexpr,
    WEIGHT_TERM: tl.constexpr, SCORE: tl.constexpr, SPLIT_LSE: tl.constexpr,
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
    if WEIGHT_TERM:
        offset = rows[:, None] * H + heads[None, :]
        delta += tl.load(weight_term_ptr + offset, mask=inside, other=0.0)
    store_statistics(
        delta, rows, inside, heads, lse_ptr, score_ptr, statistics_ptr, H,
        SCORE, SPLIT_LSE,
    )  # fmt: skip


def weight_term_of(
    call: Backward, forward: Callable[[Forward], tuple[Tensor, ...]]
) -> Tensor | None:
    """What delta has besides ``<dout, out>`` where weights were returned, [T, H].

    It is the sum over a row's edges of ``weight * dweight``; ``forward`` gives the
    weights again.
    """
    if call.dweights is None:
        return None
    saved, by_target = call.saved, call.saved.by_target
    again = Forward(
        saved.inputs,
        saved.dropout_seed,
        by_target,
        saved.by_source,
        call.copies,
        call.settings,
        call.dropout,
        weights=True,
    )
    plan, weights = schedule(by_target.pointer), forward(again)[2]
    work = plan.work(by_target, 0, call.copies, ())
    given = (by_target.position, weights, call.dweights)
    return segment_sum(plan, work, *given, copies=call.copies)


def statistics(
    call: Backward,
    forward: Callable[[Forward], tuple[Tensor, ...]],
    score: Tensor | None,
    *,
    split_lse: bool,
) -> Tensor:
    """What backward needs of each target, float32, [T, 2 to 4, H].

    In this order: lse, delta (and score). With ``split_lse``, lse is two columns: the
    maximum and the logarithm of the sum. delta is ``<dout, out>``
    per head, plus the sum over a row's edges of ``weight * dweight`` where weights were
    returned.

    Args:
        call: The call, with dense gradients.
        forward: The attention's forward pass, which gives the weights again.
        score: The score of each target, if its row of the table holds it.
        split_lse: Whether the table has the two numbers of lse, or their sum.
    """
    saved, dout = call.saved, call.dout
    rows, heads, _ = dout.shape
    weight_term = weight_term_of(call, forward)
    columns = 2 + split_lse + (score is not None)
    table = saved.lse.new_empty(rows, columns, heads)
    if table.numel() == 0:
        return table
    block, tiles, constants = rows_tile(dout)
    grid = (divide_up(rows, block), tiles)
    constants += (weight_term is not None, score is not None, split_lse)
    tensors = (dout, saved.attended, saved.lse, weight_term, score, table)
    launch(_statistics_kernel, grid, tensors, (rows, heads), constants, warps=4)
    return table


def rows_tile(z: Tensor) -> tuple[int, int, tuple[int, ...]]:
    """How many rows a program has, how many tiles a row, and the kernels' constants."""
    _, heads, channels = z.shape
    tile = choose_tile(heads, channels, z.element_size(), 256, 256)
    block = max(1, 1024 // (tile.heads * tile.channels))
    known, *_, exact = tile.constants(heads, channels)
    constants = (known, channels, block, tile.heads, tile.channels, exact)
    return block, divide_up(heads, tile.heads), constants
