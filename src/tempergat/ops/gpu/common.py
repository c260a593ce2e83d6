# mypy: allow-untyped-calls, allow-untyped-decorators
# mypy: disable-error-code="no-untyped-def, assignment"
# ruff: noqa: RUF005 (Triton reads tuple + tuple, not the unpacking of tuples)
"""What the Triton kernels share: items, tiles of a row, dropout.

Shapes in the kernels' comments: E edges of a step (BLOCK_E), H heads of a tile
(BLOCK_H), C channels of a tile (BLOCK_C), R rows, K partial results. `slots` are
places in the arrays of `Rows`; `cell` is an offset within a row of H * C numbers.
Offsets into tables are 64 bits wide throughout.
"""

import functools
from typing import Any, NamedTuple

import triton
import triton.language as tl
from torch import Tensor

from tempergat.ops.gpu.launching.launch import power_of_two
from tempergat.ops.random import drop_threshold

# The heads of an ordinary layer are a compile-time constant of its kernels. Many models
# at once have more, and share what is compiled.
_MOST_KNOWN_HEADS = 8
# Strides are given in these units, so that the compiler knows what divides them.
_UNIT = 8


class Dropout(NamedTuple):
    """Dropout as the kernels take it: seed, threshold, keep_scale and DROPOUT."""

    seed: Tensor | None
    threshold: int
    keep_scale: float
    on: bool


def dropout_arguments(rate: float, seed: Tensor | None) -> Dropout:
    """The kernels' arguments for dropout at this rate."""
    scale = 1.0 / (1.0 - rate) if rate < 1.0 else float("nan")
    return Dropout(seed, drop_threshold(rate), scale, rate > 0.0)


def contiguous_or_none(x: Tensor | None) -> Tensor | None:
    """The tensor as one block of memory, as kernels address it; None stays None."""
    return None if x is None else x.contiguous()


class RowTables(NamedTuple):
    """Tables [rows, H, C] as kernels read them, with space between rows or not.

    Attributes:
        tensors: The tables.
        strides: From row to row, in units of 8 elements; 0 where no table has space.
        strided: Whether the strides count.
    """

    tensors: tuple[Tensor, ...]
    strides: tuple[int, ...]
    strided: bool


def row_tables(*tables: Tensor) -> RowTables:
    """The tables without a copy, where the elements of every row are adjacent."""
    if all(x.is_contiguous() for x in tables):
        return RowTables(tables, (0,) * len(tables), False)
    tensors = tuple(
        x
        if x.stride()[1:] == (x.size(2), 1) and x.stride(0) % _UNIT == 0
        else x.contiguous()
        for x in tables
    )
    strides = [x.stride(0) for x in tensors]
    if any(stride % _UNIT for stride in strides):
        dense = tuple(x.contiguous() for x in tables)
        return RowTables(dense, (0,) * len(tables), False)
    return RowTables(tensors, tuple(stride // _UNIT for stride in strides), True)


class Tile(NamedTuple):
    """The part of a row one program serves, and how many edges it has in flight.

    ``edges`` of them lie side by side in the lanes of a warp, each lane with sums of
    its own; ``unroll`` such groups are read before the first is used. Of many short
    rows a warp serves at most ``per_warp`` columns.
    """

    heads: int
    channels: int
    edges: int
    unroll: int
    warps: int
    per_warp: int = 256

    def constants(self, heads: int, channels: int) -> tuple[int, ...]:
        """The kernels' KNOWN_HEADS, C, BLOCK_E, BLOCK_H, BLOCK_C, UNROLL and EXACT."""
        exact = heads % self.heads == 0 and channels == self.channels
        known = heads if exact and heads <= _MOST_KNOWN_HEADS else 0
        blocks = (self.edges, self.heads, self.channels, self.unroll)
        return (known, channels, *blocks, exact)

    def fit(self, is_short: bool, heads: int, unroll: int = 2) -> "Tile":
        """The tile for rows of so many heads, which may be many and short.

        A million programs take 0.6 ms to start. For short rows one serves twice as much
        of a row, and reads no more edges at once than most of them have: ``unroll``.
        """
        if not is_short:
            return self
        if self.warps > 1 or heads <= self.heads:
            return self._replace(unroll=min(self.unroll, unroll))
        block = 2 * self.heads
        warps = max(1, block * self.channels // self.per_warp)
        return self._replace(heads=block, unroll=unroll, warps=warps)


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
        # Rows that are not a multiple of 16 bytes are loaded element by element; a
        # smaller tile avoids spills.
        width, lanes = min(width, 64), min(lanes, 64)
    padded = power_of_two(channels)
    # The largest power of two that fits.
    block = min(power_of_two(heads), 1 << max(0, (width // padded).bit_length() - 1))
    columns = block * padded
    edges = max(1, lanes // columns)
    unroll = 4 if edges * columns * itemsize <= 1024 else 2
    return Tile(block, padded, edges, unroll, max(1, min(8, columns // 512)))


@triton.jit
def load_item(items_ptr, number):
    """Row, first slot, end slot and partial of one item of a schedule."""
    item = items_ptr + number * 4
    row = tl.load(item).to(tl.int64)
    return row, tl.load(item + 1), tl.load(item + 2), tl.load(item + 3).to(tl.int64)


@triton.jit
def load_number(
    items_ptr, number, num_items, own_rows, num_partials, COPIES: tl.constexpr
):
    """One item of a pass over the rows of all copies of a graph.

    Returns:
        The row among those of all copies, the first slot and the end, the partial
        result among those of all copies, and the copy.
    """
    copy = tl.full([], 0, tl.int64)
    number = copy + number
    if COPIES:
        copy = number // num_items
        number = number % num_items
    row, start, end, partial = load_item(items_ptr, number)
    if COPIES:
        row += copy * own_rows
        partial = tl.where(partial >= 0, partial + copy * num_partials, partial)
    return row, start, end, partial, copy


@triton.jit
def load_work(items_ptr, num_items, own_rows, num_partials, COPIES: tl.constexpr):
    """The one item of this program."""
    number = tl.program_id(0)
    return load_number(items_ptr, number, num_items, own_rows, num_partials, COPIES)


@triton.jit
def load_ends(other_ptr, first, end, BLOCK_E: tl.constexpr, UNROLL: tl.constexpr):
    """The nodes at the other end of a step's edges, UNROLL times [E]."""
    nodes = ()
    for k in tl.static_range(UNROLL):
        slots = first + k * BLOCK_E + tl.arange(0, BLOCK_E)
        nodes = nodes + (tl.load(other_ptr + slots, mask=slots < end, other=0),)
    return nodes


@triton.jit
def row_stride(units, H, C: tl.constexpr, STRIDED: tl.constexpr):
    """How many elements further the next row begins."""
    if STRIDED:
        return units.to(tl.int64) * 8
    else:
        return (H * C).to(tl.int64)


@triton.jit
def load_row(pointer, row, width, cell, inside, BLOCK_E: tl.constexpr):
    """One row of a table for each of the edges side by side, [E, H, C] or [E, H].

    So it lies in the threads as the rows of other nodes do.
    """
    edge = tl.zeros([BLOCK_E], tl.int32)[:, None]
    if len(cell.shape) == 2:
        edge = edge[:, :, None]
    place = pointer + row * width + (cell[None] + edge)
    return tl.load(place, mask=inside[None] & (edge == 0), other=0.0)


@triton.jit
def store_row(out_ptr, part_ptr, x, row, partial, width, cell, inside):
    """Writes the result of an item: of its row, or the partial one of a chunk.

    It has a first dimension of 1.
    """
    if partial >= 0:
        tl.store(part_ptr + partial * width + cell[None], x, mask=inside[None])
    else:
        target = out_ptr + row * width + cell[None]
        tl.store(target, x.to(out_ptr.dtype.element_ty), mask=inside[None])


@triton.jit
def load_merge(merges_ptr, num_merges, own_rows, num_partials):
    """Row, first partial and number of partials of this program's cut row."""
    number = tl.program_id(0)
    copy = number // num_merges
    merge = merges_ptr + (number - copy * num_merges).to(tl.int64) * 3
    row = tl.load(merge).to(tl.int64) + copy.to(tl.int64) * own_rows
    first = tl.load(merge + 1).to(tl.int64) + copy.to(tl.int64) * num_partials
    return row, first, tl.load(merge + 2)


@triton.jit
def store_item(item, row, start, end, partial, mask):
    """Writes items of a schedule at these places."""
    tl.store(item, row, mask=mask)
    tl.store(item + 1, start, mask=mask)
    tl.store(item + 2, end, mask=mask)
    tl.store(item + 3, partial, mask=mask)


# Some versions of Triton cannot tell a kernel whose card it is compiled for. With them
# it is taken for NVIDIA's.
target_info: Any = getattr(tl, "target_info", None)
KNOWS_TARGET = tl.constexpr(target_info is not None)


@triton.jit
def widen(x):
    """Half precision as float32; on NVIDIA's cards two of bfloat16 at a time."""
    NVIDIA: tl.constexpr = target_info.is_cuda() if KNOWS_TARGET else True
    if x.dtype == tl.bfloat16 and NVIDIA:
        return tl.inline_asm_elementwise(
            "shl.b32 $0, $2, 16; and.b32 $1, $2, 0xffff0000;",
            "=r,=r,r", [x], dtype=tl.float32, is_pure=True, pack=2,
        )  # fmt: skip
    return x.to(tl.float32)


@triton.jit
def mix32(x):
    """The mixer of ops/random.py."""
    x = x ^ (x >> 16)
    x = x * 0x7FEB352D
    x = x ^ (x >> 15)
    x = x * 0x846CA68B
    return x ^ (x >> 16)


@triton.jit
def fold_in(seed, data):
    """`ops.random.fold_in` on int64."""
    x = seed + (data + 1) * -0x61C8864680B583EB
    x = (x ^ ((x >> 30) & 0x3FFFFFFFF)) * -0x40A7B892E31B1A47
    x = (x ^ ((x >> 27) & 0x1FFFFFFFFF)) * -0x6B2FB644ECCEEE15
    return x ^ ((x >> 31) & 0x1FFFFFFFF)


@triton.jit
def keep_factor(seed_ptr, heads, in_row, edge_id, copy, threshold, keep_scale):
    """Dropout's factor of each weight: 0 or 1 / (1 - rate), [E, H]."""
    seed = tl.load(seed_ptr + heads, mask=in_row, other=0).to(tl.int64)
    seed_low = (seed & 0xFFFFFFFF).to(tl.uint32)
    # Each copy of a graph has a mask of its own.
    seed_high = (((seed >> 32) ^ copy) & 0xFFFFFFFF).to(tl.uint32)
    edge_id = edge_id.to(tl.int64)
    low = (edge_id & 0xFFFFFFFF).to(tl.uint32)
    high = ((edge_id >> 32) & 0xFFFFFFFF).to(tl.uint32)
    bits = mix32(low[:, None] ^ seed_low[None, :])
    bits = mix32(bits ^ high[:, None] ^ seed_high[None, :])
    kept = (bits >> 8).to(tl.int32) >= threshold
    return tl.where(kept, keep_scale, 0.0)


@triton.jit
def factors_of_edges(
    edge_id_ptr, weight_ptr, slots, valid, place, seed_ptr, heads, in_heads, H, copy,
    threshold, keep_scale, DROPOUT: tl.constexpr, WEIGHT: tl.constexpr,
):  # fmt: skip
    """What the attention weights are multiplied by, and dropout's part of it, [E, H].

    At least one of DROPOUT and WEIGHT must be set.
    """
    keep = tl.full([slots.shape[0], heads.shape[0]], 1.0, tl.float32)
    if DROPOUT:
        edge_id = tl.load(edge_id_ptr + slots, mask=valid, other=0)
        keep = keep_factor(
            seed_ptr, heads, in_heads, edge_id, copy, threshold, keep_scale
        )
    factor = keep
    if WEIGHT:
        inside = valid[:, None] & in_heads[None, :]
        cell = place[:, None] * H + heads[None, :]
        factor = keep * tl.load(weight_ptr + cell, mask=inside, other=0.0)
    return factor, keep


@triton.jit
def logit_gradient(alpha, dalpha, delta, log_sum):
    """The gradient of logits; all shapes broadcast.

    Where one edge has the whole weight of its row, the logarithm of the sum is 0 and so
    is the gradient. The difference would be rounding error, which GATv2 multiplies by
    the attention vector over T.
    """
    return tl.where(log_sum == 0.0, 0.0, alpha * (dalpha - delta))


@triton.jit
def exp(x):
    """The exponential in two instructions; results below 1e-38 are 0."""
    return tl.exp2(x * 1.4426950408889634)


@triton.jit
def tile_of_row(
    num_heads, KNOWN_HEADS: tl.constexpr, C: tl.constexpr,
    BLOCK_H: tl.constexpr, BLOCK_C: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    """What a program serves of every row.

    The number of heads is not a compile-time constant unless KNOWN_HEADS says it, so
    that one compilation serves any number of models. Where tiles fit exactly, the
    compiler sees by what row offsets can be divided, and that no element needs a mask.

    Returns:
        The number of heads H; the tile's heads, [H]; which of them there are, [H]; its
        offsets in a row of H * C numbers, [H, C]; which of these are in the row.
    """
    heads = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    channels = tl.arange(0, BLOCK_C)
    cell = heads[:, None] * C + channels[None, :]
    if EXACT:
        H = num_heads // BLOCK_H * BLOCK_H
        if KNOWN_HEADS:
            H = tl.full([], KNOWN_HEADS, tl.int32)
        in_heads = tl.full(heads.shape, True, tl.int1)
        in_row = tl.full(cell.shape, True, tl.int1)
    else:
        H = num_heads
        in_heads = heads < H
        in_row = in_heads[:, None] & (channels[None, :] < C)
    return H, heads, in_heads, cell, in_row
