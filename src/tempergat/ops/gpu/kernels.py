# mypy: allow-untyped-calls, allow-untyped-decorators
# mypy: disable-error-code="no-untyped-def, assignment"
"""The Triton kernels that both backbones share, and how their tiles are chosen.

Letters: E edges of a step, H heads of a tile, C channels of a tile, R rows, K
partial results. Offsets into tables are 64 bits wide throughout.
"""

import functools
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from tempergat.ops.calls import Backward, Forward
from tempergat.ops.gpu.launch import divide_up, launch, power_of_two
from tempergat.ops.gpu.schedule import Schedule, schedule
from tempergat.ops.graph import Rows
from tempergat.ops.random import drop_threshold


class Tile(NamedTuple):
    """The part of a row one program serves, and how many edges it has in flight.

    ``edges`` of them lie side by side in the lanes of a warp, each lane with sums of
    its own; ``unroll`` such groups are read before the first is used.
    """

    heads: int
    channels: int
    edges: int
    unroll: int
    warps: int

    def constants(self, heads: int, channels: int) -> tuple[int, ...]:
        """The kernels' H, C, BLOCK_E, BLOCK_H, BLOCK_C, UNROLL and EXACT."""
        exact = heads % self.heads == 0 and channels == self.channels
        blocks = (self.edges, self.heads, self.channels, self.unroll)
        return (heads, channels, *blocks, exact)


@functools.lru_cache
def choose_tile(
    heads: int, channels: int, itemsize: int, width: int, lanes: int
) -> Tile:
    """A tile for tables with so many heads, channels and bytes per element.

    Args:
        heads: Number of heads.
        channels: Channels per head.
        itemsize: Bytes per element.
        width: The most columns (heads times channels), unless one head has more.
        lanes: The elements that one step handles side by side.
    """
    if channels % 4:
        # Such rows cannot be read 16 bytes at a time; a thread has its hands full.
        width, lanes = min(width, 64), min(lanes, 64)
    padded = power_of_two(channels)
    block = min(power_of_two(heads), max(1, width // padded))
    columns = block * padded
    edges = max(1, lanes // columns)
    unroll = 4 if edges * columns * itemsize <= 1024 else 2
    return Tile(block, padded, edges, unroll, max(1, min(8, columns // 512)))


class Dropout(NamedTuple):
    """Dropout as the kernels take it: seed, threshold, keep_scale and DROPOUT."""

    seed: Tensor | None
    threshold: int
    keep_scale: float
    on: bool


def dropout_of(rate: float, seed: Tensor | None) -> Dropout:
    """The kernels' arguments for dropout at this rate."""
    scale = 1.0 / (1.0 - rate) if rate < 1.0 else float("nan")
    return Dropout(seed, drop_threshold(rate), scale, rate > 0.0)


def dense(x: Tensor | None) -> Tensor | None:
    """The tensor as one block of memory, as kernels address it; None stays None."""
    return None if x is None else x.contiguous()


def again_with_weights(call: Backward) -> Forward:
    """The forward call of a backward call, this time with its weights."""
    saved = call.saved
    return Forward(
        saved.inputs,
        saved.dropout_seed,
        saved.by_target,
        saved.by_source,
        call.settings,
        call.dropout,
        weights=True,
    )


def on_device(tensor: Tensor) -> AbstractContextManager[Any]:
    """Makes a CUDA tensor's device the current one, where kernels are launched."""
    return torch.cuda.device(tensor.device) if tensor.is_cuda else nullcontext()


@triton.jit
def load_item(items_ptr, number):
    """Row, first slot, end slot and partial of one item of a schedule."""
    item = items_ptr + number * 4
    row = tl.load(item).to(tl.int64)
    return row, tl.load(item + 1), tl.load(item + 2), tl.load(item + 3).to(tl.int64)


@triton.jit
def mix32(x):
    x = x ^ (x >> 16)
    x = x * 0x7FEB352D
    x = x ^ (x >> 15)
    x = x * 0x846CA68B
    return x ^ (x >> 16)


@triton.jit
def keep_factor(seed_ptr, heads, within, edge_id, threshold, keep_scale):
    """What dropout multiplies each weight of a tile [E, H] by."""
    seed = tl.load(seed_ptr + heads, mask=within, other=0).to(tl.int64)
    seed_low = (seed & 0xFFFFFFFF).to(tl.uint32)
    seed_high = ((seed >> 32) & 0xFFFFFFFF).to(tl.uint32)
    edge_id = edge_id.to(tl.int64)
    low = (edge_id & 0xFFFFFFFF).to(tl.uint32)
    high = ((edge_id >> 32) & 0xFFFFFFFF).to(tl.uint32)
    bits = mix32(low[:, None] ^ seed_low[None, :])
    bits = mix32(bits ^ high[:, None] ^ seed_high[None, :])
    kept = (bits >> 8).to(tl.int32) >= threshold
    return tl.where(kept, keep_scale, 0.0)


@triton.jit
def cells_of_tile(
    heads, channels, H: tl.constexpr, C: tl.constexpr, EXACT: tl.constexpr
):
    """Offsets of a tile in a row of H * C, and which of them are in the row."""
    cell = heads[:, None] * C + channels[None, :]
    if EXACT:
        within = tl.full(cell.shape, True, tl.int1)
    else:
        within = (heads[:, None] < H) & (channels[None, :] < C)
    return cell, within


@triton.jit
def _merge_lanes(top, total, summed):
    """One softmax of those that each lane of edges has kept for itself."""
    highest = tl.max(top, axis=0)
    safe = tl.where(highest == -float("inf"), 0.0, highest)
    scale = tl.exp(top - safe[None, :])
    return (
        highest,
        tl.sum(scale * total, axis=0),
        tl.sum(scale[:, :, None] * summed, axis=0),
    )


@triton.jit
def store_softmax(
    top, total, summed, filled, row, partial, heads, cell, within,
    out_ptr, lse_ptr, part_ptr, part_statistics_ptr, H: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    """Writes what an item of the forward pass found: its row, or its partial result."""
    head_within = heads < H
    top, total, summed = _merge_lanes(top, total, summed)
    if partial >= 0:
        tl.store(part_ptr + partial * (H * C) + cell, summed, mask=within)
        target = part_statistics_ptr + partial * (2 * H) + heads
        tl.store(target, top, mask=head_within)
        tl.store(target + H, total, mask=head_within)
    else:
        result = tl.where(filled, summed / total[:, None], 0.0)
        lse = tl.where(filled, top + tl.log(total), 0.0)
        result = result.to(out_ptr.dtype.element_ty)
        tl.store(out_ptr + row * (H * C) + cell, result, mask=within)
        tl.store(lse_ptr + row * H + heads, lse, mask=head_within)


@triton.jit(do_not_specialize=["num_rows"])
def _statistics_kernel(
    dout_ptr, out_ptr, lse_ptr, extra_ptr, score_ptr, statistics_ptr, num_rows,
    H: tl.constexpr, C: tl.constexpr, BLOCK_R: tl.constexpr, BLOCK_H: tl.constexpr,
    BLOCK_C: tl.constexpr, EXTRA: tl.constexpr, SCORE: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0).to(tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R)
    heads = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    cell, within = cells_of_tile(heads, tl.arange(0, BLOCK_C), H, C, False)
    inside = (rows < num_rows)[:, None, None] & within[None]
    offset = rows[:, None, None] * (H * C) + cell[None]
    dout = tl.load(dout_ptr + offset, mask=inside, other=0.0).to(tl.float32)
    out = tl.load(out_ptr + offset, mask=inside, other=0.0).to(tl.float32)
    delta = tl.sum(dout * out, axis=2)
    inside = (rows < num_rows)[:, None] & (heads < H)[None, :]
    offset = rows[:, None] * H + heads[None, :]
    if EXTRA:
        delta += tl.load(extra_ptr + offset, mask=inside, other=0.0)
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
    extra: Tensor | None,
    score: Tensor | None,
) -> Tensor:
    """What a source needs of each target: lse, delta (and score), [T, 2 or 3, H].

    delta is ``<dout, out>`` per head, plus ``extra``.
    """
    rows, heads, channels = dout.shape
    columns = 2 if score is None else 3
    table = lse.new_empty(rows, columns, heads)
    if table.numel() == 0:
        return table
    tile = choose_tile(heads, channels, dout.element_size(), 256, 256)
    block = max(1, 1024 // (tile.heads * tile.channels))
    grid = (divide_up(rows, block), divide_up(heads, tile.heads))
    flags = (extra is not None, score is not None)
    constants = (heads, channels, block, tile.heads, tile.channels, *flags)
    tensors = (dout, out, lse, extra, score, table)
    launch(_statistics_kernel, grid, tensors, (rows,), constants, warps=4)
    return table


@triton.jit
def _merge_softmax_kernel(
    merges_ptr, part_ptr, part_statistics_ptr, out_ptr, lse_ptr,
    H: tl.constexpr, C: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    merge = merges_ptr + tl.program_id(0).to(tl.int64) * 3
    head = tl.program_id(1)
    row = tl.load(merge).to(tl.int64)
    first = tl.load(merge + 1).to(tl.int64)
    count = tl.load(merge + 2)
    channels = tl.arange(0, BLOCK_C)
    top = tl.full([BLOCK_K], -float("inf"), tl.float32)
    for k in range(0, count, BLOCK_K):
        ks = k + tl.arange(0, BLOCK_K)
        pointer = part_statistics_ptr + (first + ks) * (2 * H) + head
        top = tl.maximum(top, tl.load(pointer, ks < count, -float("inf")))
    highest = tl.max(top, axis=0)
    safe = tl.where(highest == -float("inf"), 0.0, highest)
    total = tl.zeros([BLOCK_K], tl.float32)
    summed = tl.zeros([BLOCK_C], tl.float32)
    for k in range(0, count, BLOCK_K):
        ks = k + tl.arange(0, BLOCK_K)
        pointer = part_statistics_ptr + (first + ks) * (2 * H) + head
        scale = tl.exp(tl.load(pointer, ks < count, -float("inf")) - safe)
        total += scale * tl.load(pointer + H, ks < count, 0.0)
        offset = ((first + ks) * H + head)[:, None] * C + channels[None, :]
        inside = (ks < count)[:, None] & (channels < C)[None, :]
        part = tl.load(part_ptr + offset, mask=inside, other=0.0)
        summed += tl.sum(scale[:, None] * part, axis=0)
    total_of_row = tl.sum(total, axis=0)
    tl.store(lse_ptr + row * H + head, highest + tl.log(total_of_row))
    target = out_ptr + (row * H + head) * C + channels
    result = summed / total_of_row
    tl.store(target, result.to(out_ptr.dtype.element_ty), mask=channels < C)


def merge_softmax(
    plan: Schedule, part: Tensor, part_statistics: Tensor, out: Tensor, lse: Tensor
) -> None:
    """Writes the rows that were cut, from the chunks' maxima, totals and sums."""
    _, heads, channels = out.shape
    block = power_of_two(channels)
    constants = (heads, channels, max(1, min(32, 2048 // block)), block)
    tensors = (plan.merges, part, part_statistics, out, lse)
    grid = (plan.merges.size(0), heads)
    launch(_merge_softmax_kernel, grid, tensors, (), constants, warps=4)


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
    summed = tl.zeros([BLOCK_D], part_ptr.dtype.element_ty)
    for k in range(0, count, BLOCK_K):
        ks = k + tl.arange(0, BLOCK_K)
        inside = (ks < count)[:, None] & (columns < WIDTH)[None, :]
        offset = (first + ks)[:, None] * WIDTH + columns[None, :]
        summed += tl.sum(tl.load(part_ptr + offset, mask=inside, other=0.0), axis=0)
    target = out_ptr + row * WIDTH + columns
    tl.store(target, summed.to(out_ptr.dtype.element_ty), mask=columns < WIDTH)


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
    summed = tl.zeros([BLOCK_E, BLOCK_H], tl.float32)
    for s in range(start, end, BLOCK_E):
        slots = s + tl.arange(0, BLOCK_E)
        place = tl.load(index_ptr + slots, mask=slots < end, other=0).to(tl.int64)
        inside = (slots < end)[:, None] & (heads < H)[None, :]
        offset = place[:, None] * H + heads[None, :]
        value = tl.load(value_ptr + offset, mask=inside, other=0.0)
        if FACTOR:
            value *= tl.load(factor_ptr + offset, mask=inside, other=0.0)
        summed += value
    result = tl.sum(summed, axis=0)
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


@triton.jit(do_not_specialize=["threshold"])
def _normalise_kernel(
    items_ptr, position_ptr, edge_id_ptr, lse_ptr, weights_ptr,
    seed_ptr, threshold, keep_scale,
    H: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_H: tl.constexpr,
    DROPOUT: tl.constexpr,
):  # fmt: skip
    row, start, end, _ = load_item(items_ptr, tl.program_id(0).to(tl.int64))
    heads = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    lse = tl.load(lse_ptr + row * H + heads, mask=heads < H, other=0.0)
    for s in range(start, end, BLOCK_E):
        slots = s + tl.arange(0, BLOCK_E)
        place = tl.load(position_ptr + slots, mask=slots < end, other=0).to(tl.int64)
        inside = (slots < end)[:, None] & (heads < H)[None, :]
        target = weights_ptr + place[:, None] * H + heads[None, :]
        weight = tl.exp(tl.load(target, mask=inside, other=0.0) - lse[None, :])
        if DROPOUT:
            ids = tl.load(edge_id_ptr + slots, mask=slots < end, other=0)
            weight *= keep_factor(
                seed_ptr, heads, heads < H, ids, threshold, keep_scale
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
    constants = (heads, max(1, 128 // block), block, dropout.on)
    tensors = (plan.items, position, edge_id, lse, weights, dropout.seed)
    numbers = (dropout.threshold, dropout.keep_scale)
    launch(_normalise_kernel, grid, tensors, numbers, constants, warps=1)


def attend(
    kernel: Any, tile: Tile, call: Forward, flags: tuple[bool, ...]
) -> tuple[Tensor, Tensor, Tensor]:
    """Runs a forward pass.

    Args:
        kernel: The attention's kernel.
        tile: The part of a row its programs serve.
        call: The call.
        flags: The kernel's constants between the tile and LOGIT.

    Returns:
        The output [T, H, C], the log-sum-exp of each row [T, H] and the weights [E, H]
        (no rows if the call does not want them).
    """
    pointer, other, position, edge_id = call.by_target
    (negative_slope,), weights = call.settings, call.weights
    inputs = [dense(x) for x in call.inputs]
    dropout = dropout_of(call.dropout, call.dropout_seed)
    z = inputs[0]
    assert z is not None
    rows, (_, heads, channels) = pointer.size(0) - 1, z.shape
    out = z.new_empty(rows, heads, channels)
    lse = z.new_empty(rows, heads, dtype=torch.float32)
    # Edges that no row reaches weigh nothing.
    logit = lse.new_zeros(other.size(0) if weights else 0, heads)
    with on_device(z):
        plan = schedule(pointer)
        part = lse.new_empty(plan.num_partials, heads * channels)
        part_statistics = lse.new_empty(plan.num_partials, 2, heads)
        launch(
            kernel,
            (plan.items.size(0), divide_up(heads, tile.heads)),
            (
                *inputs, plan.items, other, position, edge_id,
                out, lse, logit, part, part_statistics, dropout.seed,
            ),
            (dropout.threshold, dropout.keep_scale, negative_slope),
            (*tile.constants(heads, channels), *flags, weights, dropout.on),
            tile.warps,
        )  # fmt: skip
        merge_softmax(plan, part, part_statistics, out, lse)
        if weights:
            normalise(plan, call.by_target, lse, logit, dropout)
    return out, lse, logit
