# mypy: allow-untyped-calls, allow-untyped-decorators
# mypy: disable-error-code="no-untyped-def, assignment"
"""Draws the neighbours of a hop's nodes; the words of `ops/random.py`, bit for bit.

Which edges a node gets is fixed by the numbers alone. Where they are stored follows
from the counts of the nodes before it: every program adds up the counts of the programs
before it, which is less work than one more pass over the nodes.
"""

from typing import Any

import triton
import triton.language as tl
from torch import Tensor

from tempergat.ops.gpu.common import fold_in
from tempergat.ops.gpu.launching.launch import launch, power_of_two

# A fanout up to this is drawn for many nodes by one program.
WIDEST_TILE = 64
_TILE = 2048
# Nodes whose edges one program counts.
_BLOCK_OF_WIDE = 128
# Larger sets of draws do not fit the registers of a program.
WIDEST = 1 << 14


@triton.jit
def _draw_below(word, limit):
    """A number from 0 to limit - 1 from 64 random bits; limit is below 2**31."""
    high, low = (word >> 32) & 0xFFFFFFFF, word & 0xFFFFFFFF
    return ((high * limit + ((low * limit) >> 32)) >> 32).to(tl.int32)


@triton.jit
def _key_of_hop(key_ptr, hop, relation):
    key = fold_in(tl.load(key_ptr), hop.to(tl.int64))
    return fold_in(key, relation.to(tl.int64))


@triton.jit
def sum_before(sums_ptr, program):
    """The sum of what the programs before this one have stored."""
    total = tl.zeros([512], tl.int32)
    for first in range(0, program, 512):
        numbers = first + tl.arange(0, 512)
        total += tl.load(sums_ptr + numbers, mask=numbers < program, other=0)
    return tl.sum(total, axis=0)


@triton.jit
def _rows_of_program(n_id_ptr, nodes_ptr, pointer_ptr, hop, BLOCK: tl.constexpr):
    """The nodes that a program expands: row, whether it is one, number, begin, degree.

    ``nodes`` holds how many nodes there are before each hop.
    """
    first = tl.load(nodes_ptr + hop) + tl.program_id(0) * BLOCK
    rows = first + tl.arange(0, BLOCK)
    inside = rows < tl.load(nodes_ptr + hop + 1)
    node = tl.load(n_id_ptr + rows, mask=inside, other=0)
    begin = tl.load(pointer_ptr + node, mask=inside, other=0)
    end = tl.load(pointer_ptr + node + 1, mask=inside, other=0)
    return rows, inside, node, begin, (end - begin).to(tl.int32)


@triton.jit
def _count_of(degree, fanout, REPLACE: tl.constexpr):
    """How many edges a node gets."""
    drawn = tl.minimum(degree, fanout)
    if REPLACE:
        drawn = tl.where(degree > 0, fanout, 0)
    return tl.where(fanout < 0, degree, drawn)


@triton.jit(do_not_specialize=["hop", "fanout"])
def _count_kernel(
    n_id_ptr, nodes_ptr, pointer_ptr, sums_ptr, hop, fanout,
    REPLACE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    _, _, _, _, degree = _rows_of_program(n_id_ptr, nodes_ptr, pointer_ptr, hop, BLOCK)
    count = _count_of(degree, fanout, REPLACE)
    tl.store(sums_ptr + tl.program_id(0), tl.sum(count, axis=0))


@triton.jit
def _store_edges(
    source_ptr, visited_ptr, fresh_ptr, out_source_ptr, out_target_ptr, out_slot_ptr,
    slot, place, row, valid,
):  # fmt: skip
    """Stores edges, and marks their sources unless they have a row already."""
    source = tl.load(source_ptr + slot, mask=valid, other=0).to(tl.int32)
    tl.store(out_source_ptr + place, source, mask=valid)
    tl.store(out_target_ptr + place, row, mask=valid)
    tl.store(out_slot_ptr + place, slot, mask=valid)
    word, bit = source >> 5, source & 31
    seen = (tl.load(visited_ptr + word, mask=valid, other=-1) >> bit) & 1
    one = tl.full(source.shape, 1, tl.int32)
    tl.atomic_or(fresh_ptr + word, one << bit, mask=valid & (seen == 0), sem="relaxed")


@triton.jit(do_not_specialize=["hop", "relation", "fanout"])
def _draw_kernel(
    n_id_ptr, nodes_ptr, pointer_ptr, source_ptr, key_ptr, sums_ptr,
    visited_ptr, fresh_ptr,
    edges_ptr, out_pointer_ptr, out_source_ptr, out_target_ptr, out_slot_ptr,
    hop, relation, fanout,
    REPLACE: tl.constexpr, DRAWS: tl.constexpr, BLOCK: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """One program per BLOCK nodes; without DRAWS only where their edges begin."""
    rows, inside, node, begin, degree = _rows_of_program(
        n_id_ptr, nodes_ptr, pointer_ptr, hop, BLOCK
    )
    program = tl.program_id(0)
    count = _count_of(degree, fanout, REPLACE)
    before = tl.load(edges_ptr + hop) + sum_before(sums_ptr, program)
    end = before + tl.cumsum(count, axis=0)
    tl.store(out_pointer_ptr + rows + 1, end, mask=inside)
    if program == tl.num_programs(0) - 1:
        tl.store(edges_ptr + hop + 1, before + tl.sum(count, axis=0))
    if DRAWS:
        draws = tl.arange(0, K)[None, :]
        key = fold_in(_key_of_hop(key_ptr, hop, relation), node)[:, None]
        last = degree[:, None] - fanout + draws
        limit = degree[:, None] + draws * 0 if REPLACE else last + 1
        number = _draw_below(fold_in(key, draws.to(tl.int64)), limit.to(tl.int64))
        chosen = tl.zeros([BLOCK, K], tl.int32)
        # How many of the chosen positions are smaller; equal ones keep their order.
        rank = tl.zeros([BLOCK, K], tl.int32)
        for draw in range(fanout):
            this, earlier = draws == draw, draws < draw
            new = tl.sum(tl.where(this, number, 0), axis=1)[:, None]
            if not REPLACE:
                equal = tl.where(earlier & (chosen == new), 1, 0)
                taken = tl.max(equal, axis=1)[:, None] > 0
                new = tl.where(taken, degree[:, None] - fanout + draw, new)
            smaller = tl.where(earlier & (chosen <= new), 1, 0)
            larger = tl.where(earlier & (chosen > new), 1, 0)
            rank = tl.where(this, tl.sum(smaller, axis=1)[:, None], rank + larger)
            chosen = tl.where(this, new, chosen)
        takes_all = (degree <= fanout)[:, None]
        if not REPLACE:
            chosen = tl.where(takes_all, draws, chosen)
            rank = tl.where(takes_all, draws, rank)
        valid = inside[:, None] & (draws < count[:, None])
        _store_edges(
            source_ptr, visited_ptr, fresh_ptr,
            out_source_ptr, out_target_ptr, out_slot_ptr,
            begin[:, None] + chosen, (end - count)[:, None] + rank,
            rows[:, None] + draws * 0, valid,
        )  # fmt: skip


@triton.jit(do_not_specialize=["hop", "relation", "fanout"])
def _wide_kernel(
    n_id_ptr, nodes_ptr, pointer_ptr, source_ptr, key_ptr, visited_ptr, fresh_ptr,
    out_pointer_ptr, out_source_ptr, out_target_ptr, out_slot_ptr,
    hop, relation, fanout,
    REPLACE: tl.constexpr, K: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """One program per node, for large fanouts and for all edges."""
    row = tl.load(nodes_ptr + hop) + tl.program_id(0)
    if row < tl.load(nodes_ptr + hop + 1):
        node = tl.load(n_id_ptr + row)
        begin = tl.load(pointer_ptr + node)
        degree = (tl.load(pointer_ptr + node + 1) - begin).to(tl.int32)
        start = tl.load(out_pointer_ptr + row)
        draws_some = (fanout >= 0) & (degree > (0 if REPLACE else fanout))
        if draws_some:
            draws = tl.arange(0, K)
            key = fold_in(_key_of_hop(key_ptr, hop, relation), node)
            limit = tl.zeros([K], tl.int32) + degree
            if not REPLACE:
                limit = limit - fanout + draws + 1
            number = _draw_below(fold_in(key, draws.to(tl.int64)), limit.to(tl.int64))
            chosen = tl.zeros([K], tl.int32)
            rank = tl.zeros([K], tl.int32)
            for draw in range(fanout):
                this, earlier = draws == draw, draws < draw
                new = tl.sum(tl.where(this, number, 0), axis=0)
                if not REPLACE:
                    taken = tl.sum(tl.where(earlier & (chosen == new), 1, 0), axis=0)
                    new = tl.where(taken > 0, degree - fanout + draw, new)
                smaller = tl.sum(tl.where(earlier & (chosen <= new), 1, 0), axis=0)
                larger = tl.where(earlier & (chosen > new), 1, 0)
                rank = tl.where(this, smaller, rank + larger)
                chosen = tl.where(this, new, chosen)
            _store_edges(
                source_ptr, visited_ptr, fresh_ptr,
                out_source_ptr, out_target_ptr, out_slot_ptr,
                begin + chosen, start + rank, row + draws * 0, draws < fanout,
            )  # fmt: skip
        else:
            for first in range(0, degree, CHUNK):
                position = first + tl.arange(0, CHUNK)
                _store_edges(
                    source_ptr, visited_ptr, fresh_ptr,
                    out_source_ptr, out_target_ptr, out_slot_ptr,
                    begin + position, start + position, row + position * 0,
                    position < degree,
                )  # fmt: skip


def block_of(fanout: int) -> int:
    """How many nodes a program expands with this fanout."""
    if not 0 < fanout <= WIDEST_TILE:
        return _BLOCK_OF_WIDE
    return min(128, _TILE // power_of_two(fanout))


def count_edges(
    n_id: Tensor,
    nodes: Tensor,
    pointer: Tensor,
    sums: Tensor,
    hop: int,
    fanout: int,
    replace: bool,
) -> None:
    """Counts the edges of the nodes that a hop expands, summed up by program.

    Args:
        n_id: The nodes of the batch so far, int64.
        nodes: How many there are before each hop, int32.
        pointer: The pointer of the whole graph, int64.
        sums: The result: one number per program, int32. Its length times
            `block_of(fanout)` is the most nodes that the hop may expand.
        hop: The hop.
        fanout: How many edges are drawn; -1 for all.
        replace: Whether an edge may be drawn more than once.
    """
    launch(
        _count_kernel,
        (sums.size(0), 1),
        (n_id, nodes, pointer, sums),
        (hop, fanout),
        (replace, block_of(fanout)),
        warps=4,
    )


def draw_edges(
    given: tuple[Tensor, ...],
    marks: tuple[Tensor, Tensor],
    made: tuple[Tensor, ...],
    numbers: tuple[int, int, int],
    replace: bool,
) -> None:
    """Draws the edges of the nodes that a hop expands, after `count_edges`.

    Args:
        given: ``n_id``, ``nodes``, ``pointer``, the sources of the whole graph, the
            key of the batch (int64, one number), and ``sums``.
        marks: A bit for each node that has a row, and one for each that was found in
            this hop and has none, int32.
        made: How many edges there are before each hop; then pointer, source, target
            and slot of the batch's edges. Sources are numbers of the whole graph.
        numbers: Hop, relation and fanout.
        replace: Whether an edge may be drawn more than once.
    """
    fanout = numbers[2]
    *inputs, sums = given
    block = block_of(fanout)
    narrow = 0 < fanout <= WIDEST_TILE
    width = power_of_two(max(fanout, 1)) if narrow else 1
    constants: tuple[Any, ...] = (replace, narrow, block, width)
    tensors = (*inputs, sums, *marks, *made)
    launch(_draw_kernel, (sums.size(0), 1), tensors, numbers, constants, warps=4)
    if not narrow and fanout != 0:
        width = power_of_two(max(fanout, 1))
        launch(
            _wide_kernel,
            (sums.size(0) * block, 1),
            (*inputs, *marks, *made[1:]),
            numbers,
            (replace, width, 256),
            warps=max(1, min(16, width // 128)),
        )
