# mypy: allow-untyped-calls, allow-untyped-decorators
# mypy: disable-error-code="no-untyped-def, assignment"
"""Groups the edges of a sampled batch for a layer, with or without self-loops.

A batch's edges are sorted by target, so only the edges by source need a sort.
Everything else has a closed form: with self-loops, the slots of row ``i`` move by
``i``, and its self-loop comes last.

All shapes are given. The device knows how many rows and edges are in use; rows after
them have no edges. So the same kernels serve batches of known size and CUDA graphs.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from tempergat.ops.gpu import schedule as schedules
from tempergat.ops.gpu.common import store_item
from tempergat.ops.gpu.edges import count_below
from tempergat.ops.gpu.launching.launch import divide_up, launch

_BLOCK = 256
# No row is as long.
_ENDLESS = 1 << 30


class Sizes(NamedTuple):
    """How many rows and edges a layer's arrays have room for."""

    num_src: int
    num_dst: int
    num_edges: int


class Batch(NamedTuple):
    """A sampled batch, as `hops.Sampled` has it for one relation.

    Attributes:
        pointer: Where the edges of each target begin and end, int32.
        source: The row of each edge's source, int32.
        target: The row of each edge's target, int32.
        nodes: How many nodes there are before each hop, int32.
        edges: How many edges there are before each hop, int32.
        hops: Number of hops.
        loops: How many of the edges up to each one, itself included, are self-loops,
            int32; None if there are none.
    """

    pointer: Tensor
    source: Tensor
    target: Tensor
    nodes: Tensor
    edges: Tensor
    hops: int
    loops: Tensor | None


# By target, then by source: further items, partial results and merges. After the first
# three: the number of edges that are kept.
FACTS = 8


class Layer(NamedTuple):
    """A layer's edges.

    Attributes:
        ends: Source, target and identity of every edge, in the graph's order.
        by_target: Pointer, other, position and edge_id of the edges by target.
        by_source: The same by source; None if it was not asked for.
        slots: For each slot by target, the slot by source of the same edge.
        target_plan: The schedule's items and merges of the rows by target, with room
            for as many cut rows as there can be. Items: at the end one per row, before
            them the further ones of rows that were cut, before them ones that do
            nothing. Merges: the rows that were cut, then ones that do nothing.
        source_plan: The same of the rows by source.
    """

    ends: tuple[Tensor, ...]
    by_target: tuple[Tensor, ...]
    by_source: tuple[Tensor, ...] | None
    slots: Tensor
    target_plan: tuple[Tensor, Tensor]
    source_plan: tuple[Tensor, Tensor]


@triton.jit
def _loops_before(loops_ptr, place, valid, LOOPS: tl.constexpr):
    """How many of the edges before a place are self-loops."""
    if LOOPS:
        has_one = valid & (place > 0)
        return tl.load(loops_ptr + place - 1, mask=has_one, other=0)
    else:
        return place * 0


@triton.jit
def _row_start(pointer_ptr, loops_ptr, rows, expanded, used, LOOPS: tl.constexpr):
    """Where the edges of each row begin; all end before the rows without edges."""
    known = rows <= expanded
    start = tl.load(pointer_ptr + rows, mask=known, other=0)
    start = tl.where(known, start, used)
    return start - _loops_before(loops_ptr, start, start >= 0, LOOPS)


@triton.jit(do_not_specialize=["hop", "num_src", "num_edges", "extra", "partial"])
def _key_kernel(
    source_ptr, target_ptr, edges_ptr, keys_ptr, items_ptr, merges_ptr, facts_ptr,
    hop, num_src, num_edges, extra, partial,
    LOOPED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Keys by source; edges that are not in use or replaced come last."""
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < tl.load(edges_ptr + hop)
    source = tl.load(source_ptr + place, mask=inside, other=0)
    if LOOPED:
        target = tl.load(target_ptr + place, mask=inside, other=0)
        inside = inside & (source != target)
    tl.store(
        keys_ptr + place, tl.where(inside, source, num_src), mask=place < num_edges
    )
    # Items and merges that do nothing, where none are written later.
    zero = tl.zeros([BLOCK], tl.int32)
    item, merge, here = items_ptr + place * 4, merges_ptr + place * 3, place < extra
    store_item(item, zero, zero, zero, zero + partial, here)
    tl.store(merge, zero + (num_src - 1), mask=here)
    tl.store(merge + 1, zero + partial, mask=here)
    tl.store(merge + 2, zero, mask=here)
    tl.store(facts_ptr + place, zero, mask=place < 8)


@triton.jit
def _schedule_rows(
    items_ptr, merges_ptr, facts_ptr, rows, inside, start, end, extra, longest
):
    """An item for each row; long rows get more, and a merge.

    `schedule.py` says what these are. There the host reads how many rows must be cut;
    here room is made for as many as there can be.
    """
    lanes = rows * 0
    degree = tl.where(inside, end - start, 0)
    cut = degree > longest
    chunks = tl.where(cut, (degree + longest - 1) // longest, 1)
    first_partial = lanes - 1
    if tl.max(degree, axis=0) > longest:
        # Which places a row gets does not matter: its chunks stay in order.
        item = tl.atomic_add(facts_ptr + lanes, chunks - 1, mask=cut)
        partial = tl.atomic_add(facts_ptr + 1 + lanes, chunks, mask=cut)
        merge = merges_ptr + 3 * tl.atomic_add(
            facts_ptr + 2 + lanes, lanes + 1, mask=cut
        )
        first_partial = tl.where(cut, partial, -1)
        tl.store(merge, rows, mask=cut)
        tl.store(merge + 1, partial, mask=cut)
        tl.store(merge + 2, chunks, mask=cut)
        for k in range(1, tl.max(chunks, axis=0)):
            here = cut & (k < chunks)
            low = start + (degree.to(tl.int64) * k // chunks).to(tl.int32)
            high = start + (degree.to(tl.int64) * (k + 1) // chunks).to(tl.int32)
            place = items_ptr + (extra - item - k) * 4
            store_item(place, rows, low, high, partial + k, here)
    # The first chunk, or the whole row.
    place = items_ptr + (extra + rows) * 4
    store_item(place, rows, start, start + degree // chunks, first_partial, inside)


@triton.jit
def _store_edge(array_ptr, room, place, other, position, edge_id, mask):
    tl.store(array_ptr + place, other, mask=mask)
    tl.store(array_ptr + room + place, position, mask=mask)
    tl.store(array_ptr + 2 * room + place, edge_id, mask=mask)


@triton.jit(
    do_not_specialize=[
        "depth", "hop", "num_src", "num_dst", "num_edges", "room",
        "target_extra", "source_extra", "target_longest", "source_longest",
        "edge_programs", "target_programs",
    ]
)  # fmt: skip
def _layer_kernel(
    pointer_ptr, source_ptr, target_ptr, nodes_ptr, edges_ptr, loops_ptr,
    sorted_ptr, order_ptr,
    ends_ptr, target_pointer_ptr, target_rows_ptr, source_pointer_ptr, source_rows_ptr,
    slots_ptr, target_items_ptr, target_merges_ptr, source_items_ptr, source_merges_ptr,
    facts_ptr,
    depth, hop, num_src, num_dst, num_edges, room,
    target_extra, source_extra, target_longest, source_longest,
    edge_programs, target_programs,
    LOOPED: tl.constexpr, LOOPS: tl.constexpr, BOTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    looped_rows = 0
    if LOOPED:
        looped_rows = tl.load(nodes_ptr + depth + 1)
    # The nodes of the last hop have no edges.
    expanded = tl.load(nodes_ptr + hop)
    used = tl.load(edges_ptr + hop)
    kept = used - _loops_before(loops_ptr, used, used >= 0, LOOPS)
    if program < edge_programs:
        place = program * BLOCK + lanes
        inside = place < used
        source = tl.load(source_ptr + place, mask=inside, other=0)
        target = tl.load(target_ptr + place, mask=inside, other=0)
        position = place - _loops_before(loops_ptr, place, inside, LOOPS)
        if LOOPED:
            inside = inside & (source != target)
        _store_edge(ends_ptr, room, position, source, target, place, inside)
        slot = position + target if LOOPED else place
        _store_edge(target_rows_ptr, room, slot, source, position, place, inside)
        if BOTH:
            inside = place < kept
            edge = tl.load(order_ptr + place, mask=inside, other=0).to(tl.int32)
            source = tl.load(sorted_ptr + place, mask=inside, other=0)
            target = tl.load(target_ptr + edge, mask=inside, other=0)
            position = edge - _loops_before(loops_ptr, edge, inside, LOOPS)
            slot = place + tl.minimum(source, looped_rows)
            _store_edge(source_rows_ptr, room, slot, target, position, edge, inside)
            by_target = position + target if LOOPED else edge
            tl.store(slots_ptr + by_target, slot, mask=inside)
        if program == 0:
            tl.store(facts_ptr + 3, kept)
    elif program < edge_programs + target_programs:
        rows = (program - edge_programs) * BLOCK + lanes
        start = _row_start(pointer_ptr, loops_ptr, rows, expanded, used, LOOPS)
        end = _row_start(pointer_ptr, loops_ptr, rows + 1, expanded, used, LOOPS)
        start += tl.minimum(rows, looped_rows)
        end += tl.minimum(rows + 1, looped_rows)
        tl.store(target_pointer_ptr + rows, start, mask=rows <= num_dst)
        _schedule_rows(
            target_items_ptr, target_merges_ptr, facts_ptr,
            rows, rows < num_dst, start, end, target_extra, target_longest,
        )  # fmt: skip
        if LOOPED:
            here = rows < looped_rows
            number, edge = kept + rows, used + rows
            _store_edge(ends_ptr, room, number, rows, rows, edge, here)
            _store_edge(target_rows_ptr, room, end - 1, rows, number, edge, here)
    else:
        rows = (program - edge_programs - target_programs) * BLOCK + lanes
        start = count_below(sorted_ptr, num_edges, rows)
        end = count_below(sorted_ptr, num_edges, rows + 1)
        start += tl.minimum(rows, looped_rows)
        end += tl.minimum(rows + 1, looped_rows)
        tl.store(source_pointer_ptr + rows, start, mask=rows <= num_src)
        if LOOPED:
            here = rows < looped_rows
            number, edge = kept + rows, used + rows
            _store_edge(source_rows_ptr, room, end - 1, rows, number, edge, here)
            # The self-loop is the last of its row by target, too.
            last = _row_start(pointer_ptr, loops_ptr, rows + 1, expanded, used, LOOPS)
            tl.store(slots_ptr + last + rows, end - 1, mask=here)
        _schedule_rows(
            source_items_ptr, source_merges_ptr, facts_ptr + 4,
            rows, rows < num_src, start, end, source_extra, source_longest,
        )  # fmt: skip


def group_layer(
    batch: Batch,
    depth: int,
    sizes: Sizes,
    facts: Tensor,
    *,
    looped: bool,
    both: bool,
    padded: bool,
) -> Layer:
    """The edges of the layer that has ``depth`` layers after it.

    Args:
        batch: The batch.
        depth: At most the number of hops.
        sizes: What the arrays have room for.
        facts: Room for `FACTS` numbers, int32.
        looped: Whether every target gets exactly one self-loop.
        both: Whether the edges are grouped by source too.
        padded: Whether the schedules must serve without knowing what was cut. Then rows
            by target are not cut.
    """
    num_src, num_dst, num_edges = sizes
    hop = min(depth + 1, batch.hops)
    slots = num_edges + num_dst if looped else num_edges
    room = divide_up(max(slots, 1), 4) * 4
    longest = schedules.longest_item(slots)
    extra = slots // longest
    new = batch.source.new_empty
    keys = new(num_edges)
    cut = 0 if padded else extra
    target_plan = (new(cut + num_dst, 4), new(cut, 3))
    source_plan = (new(extra + num_src if both else 0, 4), new(extra, 3))
    launch(
        _key_kernel,
        (divide_up(max(num_edges, extra, FACTS), _BLOCK), 1),
        (batch.source, batch.target, batch.edges, keys, *source_plan, facts),
        (hop, num_src, num_edges, extra if both else 0, 2 * extra),
        (looped, _BLOCK),
        warps=4,
    )
    ordered, order = torch.sort(keys, stable=True) if both else (keys, keys)
    ends, by_target = new(3, room), new(3, room)
    if padded:
        # Edges that are not in use lead to a row that belongs to no node.
        ends[0].zero_()
        ends[1:].fill_(num_dst)
    by_source, by_target_slots = (new(3, room), new(room)) if both else (ends, ends[0])
    target_pointer, source_pointer = new(num_dst + 1), new(num_src + 1 if both else 0)
    edge_programs = max(1, divide_up(num_edges, _BLOCK))
    target_programs = divide_up(num_dst + 1, _BLOCK)
    source_programs = divide_up(num_src + 1, _BLOCK) if both else 0
    launch(
        _layer_kernel,
        (edge_programs + target_programs + source_programs, 1),
        (
            batch.pointer, batch.source, batch.target, batch.nodes, batch.edges,
            batch.loops if looped else None, ordered, order,
            ends, target_pointer, by_target, source_pointer, by_source,
            by_target_slots, *target_plan, *source_plan, facts,
        ),
        (
            depth, hop, num_src, num_dst, num_edges, room,
            cut, extra, _ENDLESS if padded else longest, longest,
            edge_programs, target_programs,
        ),
        (looped, looped and batch.loops is not None, both, _BLOCK),
        warps=4,
    )  # fmt: skip
    used = [array[:, :slots].unbind() for array in (ends, by_target, by_source)]
    return Layer(
        used[0],
        (target_pointer, *used[1]),
        (source_pointer, *used[2]) if both else None,
        by_target_slots[:slots],
        target_plan,
        source_plan,
    )
