# mypy: allow-untyped-calls, allow-untyped-decorators
# mypy: disable-error-code="no-untyped-def, assignment"
"""Groups the edges of a new graph on the GPU with few operations of the host.

Two kernels and one sort do what `ops/graphs/graph.py` does with some sixty calls of
torch. The host waits for the device once, for a handful of numbers: they say whether
every node number is in range, how many edges were dropped, and the largest degrees.

Edge e of `edge_index` has number e, and the added self-loop of node i has number
num_edges + i. All of them have two keys: the target, and the source after all targets.
A dropped edge has the key of a row that belongs to no node. One stable sort of all keys
gives the edges by target, then those by source, each with the dropped ones at the end.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from tempergat.ops.gpu import schedule as schedules
from tempergat.ops.gpu.common import store_item
from tempergat.ops.gpu.launching.launch import divide_up, is_compile_only, launch

_BLOCK = 256
_FACTS = 9
# Where kernels are only compiled, one row is cut on each side, so that all are needed.
_COMPILE_ONLY_FACTS = [0] * 7 + [(1 << 32) + 1] * 2


class Grouped(NamedTuple):
    """A graph's edges, and what was learnt of them.

    Attributes:
        edges: Source, target and identity of every edge that was kept.
        by_target: The four parts of the edges by target.
        by_source: The same by source; None if it was not asked for.
        lowest: The smallest source and target, or 0 if they are larger.
        highest: The largest source and target, or 0 if they are smaller.
    """

    edges: tuple[Tensor, ...]
    by_target: tuple[Tensor, ...]
    by_source: tuple[Tensor, ...] | None
    lowest: tuple[int, int]
    highest: tuple[int, int]


@triton.jit(do_not_specialize=["num_edges", "total", "num_src", "num_dst"])
def _key_kernel(
    edge_ptr, keys_ptr, facts_ptr, num_edges, total, num_src, num_dst,
    LOOPS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    number = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    given = number < num_edges
    src = tl.load(edge_ptr + number, mask=given, other=0).to(tl.int64)
    dst = tl.load(edge_ptr + num_edges + number, mask=given, other=0).to(tl.int64)
    tl.atomic_max(facts_ptr, tl.max(src, axis=0), sem="relaxed")
    tl.atomic_max(facts_ptr + 1, tl.max(dst, axis=0), sem="relaxed")
    tl.atomic_max(facts_ptr + 2, tl.max(-src, axis=0), sem="relaxed")
    tl.atomic_max(facts_ptr + 3, tl.max(-dst, axis=0), sem="relaxed")
    dropped = (src < 0) | (src >= num_src) | (dst < 0) | (dst >= num_dst)
    if LOOPS:
        dropped = dropped | (src == dst)
    dropped = dropped & given
    count = tl.sum(dropped.to(tl.int32), axis=0)
    if count > 0:
        tl.atomic_add(facts_ptr + 4, count.to(tl.int64), sem="relaxed")
    loop = (number - num_edges).to(tl.int64)
    src = tl.where(dropped, num_src, tl.where(given, src, loop)) + num_dst + 1
    dst = tl.where(dropped, num_dst, tl.where(given, dst, loop))
    tl.store(keys_ptr + number, dst.to(tl.int32), mask=number < total)
    tl.store(keys_ptr + total + number, src.to(tl.int32), mask=number < total)


@triton.jit
def count_below(sorted_ptr, count, wanted):
    """How many of the first sorted numbers are below each wanted one."""
    low = tl.zeros_like(wanted)
    high = low + count
    span = count
    while span > 0:
        searching = low < high
        middle = (low + high) // 2
        value = tl.load(sorted_ptr + middle, mask=searching, other=0)
        below = searching & (value < wanted)
        low = tl.where(below, middle + 1, low)
        high = tl.where(below, high, tl.where(searching, middle, high))
        span = span // 2
    return low


@triton.jit
def _extra_items(degree, longest):
    """How many more items a row is cut into; in the upper half whether it is cut."""
    more = tl.where(degree > longest, (degree - 1) // longest, 0)
    return more.to(tl.int64) + ((more > 0).to(tl.int64) << 32)


@triton.jit
def _group_rows(
    sorted_ptr, facts_ptr, pointer_ptr, items_ptr, sum_ptr, rows, total, num_rows,
    first_key, longest, SIDE: tl.constexpr,
):  # fmt: skip
    """Row pointers, an item for each row, and how many more items these rows need."""
    start = count_below(sorted_ptr, total, rows + first_key)
    end = count_below(sorted_ptr, total, rows + (first_key + 1))
    tl.store(pointer_ptr + rows, start, mask=rows <= num_rows)
    inside = rows < num_rows
    whole_row = tl.full(rows.shape, -1, tl.int32)
    store_item(items_ptr + rows * 4, rows, start, end, whole_row, inside)
    degree = tl.where(inside, end - start, 0)
    largest = tl.max(degree, axis=0).to(tl.int64)
    tl.atomic_max(facts_ptr + 5 + SIDE, largest, sem="relaxed")
    cut = tl.sum(_extra_items(degree, longest), axis=0)
    tl.store(sum_ptr, cut)
    if cut > 0:
        tl.atomic_add(facts_ptr + 7 + SIDE, cut, sem="relaxed")


@triton.jit(
    do_not_specialize=[
        "total", "room", "num_src", "num_dst", "longest", "longest_of_small",
        "items_of_small", "edge_programs", "target_programs",
    ]
)  # fmt: skip
def _group_kernel(
    keys_ptr, sorted_ptr, order_ptr, facts_ptr,
    edges_ptr, items_ptr, pointer_ptr, sums_ptr,
    total, room, num_src, num_dst, longest, longest_of_small, items_of_small,
    edge_programs, target_programs,
    BOTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    kept = total - tl.load(facts_ptr + 4).to(tl.int32)
    # As `schedule.longest_item` has it.
    longest = tl.minimum(longest, tl.maximum(longest_of_small, kept // items_of_small))
    if program < edge_programs:
        slots = program * BLOCK + lanes
        dropped_ptr = order_ptr + kept
        inside = slots < total
        # The edge with the number `slots`, at its place in the order of the graph.
        dst = tl.load(keys_ptr + slots, mask=inside, other=0)
        src = tl.load(keys_ptr + total + slots, mask=inside, other=0) - (num_dst + 1)
        place = slots - count_below(dropped_ptr, total - kept, slots)
        here = inside & (dst < num_dst)
        tl.store(edges_ptr + place, src, mask=here)
        tl.store(edges_ptr + room + place, dst, mask=here)
        tl.store(edges_ptr + 2 * room + place, slots, mask=here)
        # The edges that have this slot by target and by source.
        here = slots < kept
        for side in tl.static_range(2 if BOTH else 1):
            number = tl.load(order_ptr + side * total + slots, mask=here, other=0)
            number = number.to(tl.int32) - side * total
            place = number - count_below(dropped_ptr, total - kept, number)
            if side == 0:
                other = tl.load(keys_ptr + total + number, mask=here, other=0)
                other -= num_dst + 1
            else:
                other = tl.load(keys_ptr + number, mask=here, other=0)
                tl.store(edges_ptr + 9 * room + place, slots, mask=here)
            target = edges_ptr + (3 + 3 * side) * room + slots
            tl.store(target, other, mask=here)
            tl.store(target + room, place, mask=here)
            tl.store(target + 2 * room, number, mask=here)
    elif program < edge_programs + target_programs:
        rows = (program - edge_programs) * BLOCK + lanes
        _group_rows(
            sorted_ptr, facts_ptr, pointer_ptr, items_ptr,
            sums_ptr + (program - edge_programs),
            rows, total, num_dst, 0, longest, 0,
        )  # fmt: skip
    else:
        rows = (program - edge_programs - target_programs) * BLOCK + lanes
        _group_rows(
            sorted_ptr + total, facts_ptr, pointer_ptr + (num_dst + 4) // 4 * 4,
            items_ptr + num_dst * 4, sums_ptr + (program - edge_programs),
            rows, total, num_src, num_dst + 1, longest, 1,
        )  # fmt: skip


@triton.jit(
    do_not_specialize=[
        "num_dst", "num_src", "longest", "target_programs", "more", "cut",
    ]
)  # fmt: skip
def _cut_kernel(
    pointer_ptr, sums_ptr, items_ptr, merges_ptr, num_dst, num_src, longest,
    target_programs, more, cut, BLOCK: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    # The second half of each table is that of the sources.
    side = (program >= target_programs).to(tl.int32)
    first_program = side * target_programs
    num_rows = tl.where(side == 1, num_src, num_dst)
    pointer_ptr += side * ((num_dst + 4) // 4 * 4)
    items_ptr += side * ((num_dst + more) * 4)
    merges_ptr += side * ((cut * 3 + 3) // 4 * 4)
    rows = (program - first_program) * BLOCK + lanes
    inside = rows < num_rows
    start = tl.load(pointer_ptr + rows, mask=inside, other=0)
    degree = tl.load(pointer_ptr + rows + 1, mask=inside, other=0) - start
    extra = _extra_items(degree, longest)
    # Of the rows before: those of earlier programs, then those of this one.
    sums = tl.zeros([BLOCK], tl.int64)
    for k in range(first_program, program, BLOCK):
        sums += tl.load(sums_ptr + k + lanes, mask=k + lanes < program, other=0)
    before = tl.sum(sums, axis=0) + tl.cumsum(extra, axis=0) - extra
    chunks = (extra & 0xFFFFFFFF).to(tl.int32) + 1
    items_before = (before & 0xFFFFFFFF).to(tl.int32)
    cut_before = (before >> 32).to(tl.int32)
    first = items_before + cut_before
    is_cut = inside & (chunks > 1)
    for k in range(tl.max(chunks, axis=0)):
        here = inside & (k < chunks)
        low = (degree.to(tl.int64) * k // chunks).to(tl.int32)
        high = (degree.to(tl.int64) * (k + 1) // chunks).to(tl.int32)
        item = items_ptr + (rows + items_before + k) * 4
        partial = tl.where(is_cut, first + k, -1)
        store_item(item, rows, start + low, start + high, partial, here)
    merge = merges_ptr + cut_before * 3
    tl.store(merge, rows, mask=is_cut)
    tl.store(merge + 1, first, mask=is_cut)
    tl.store(merge + 2, chunks, mask=is_cut)


def group_edges(
    edge_index: Tensor, sizes: tuple[int, int], num_loops: int, both: bool
) -> Grouped:
    """Replaces self-loops if asked to, and groups the edges; drops those out of range.

    Args:
        edge_index: The edges, int64 or int32, [2, E].
        sizes: The number of source and of target nodes.
        num_loops: 0, or ``min(sizes)`` to replace all self-loops by that many.
        both: Whether they are grouped by source too.
    """
    num_src, num_dst = sizes
    num_edges = edge_index.size(1)
    total = num_edges + num_loops
    facts = torch.zeros(_FACTS, dtype=torch.int64, device=edge_index.device)
    keys = facts.new_empty(2 * total, dtype=torch.int32)
    edge_programs = divide_up(total, _BLOCK)
    launch(
        _key_kernel,
        (edge_programs, 1),
        (edge_index.contiguous(), keys, facts),
        (num_edges, total, num_src, num_dst),
        (num_loops > 0, _BLOCK),
        warps=4,
    )
    ordered, order = torch.sort(keys if both else keys[:total], stable=True)
    # Every part starts at a multiple of 16 bytes, on which compiled kernels rely.
    room = _aligned(total)
    edges = keys.new_empty(10 if both else 6, room)
    items = keys.new_empty(num_dst + num_src, 4)
    spaces = [num_dst + 1, 0, num_src + 1]
    spaces[1] = _aligned(spaces[0]) - spaces[0]
    pointers = keys.new_empty(sum(spaces))
    target_programs = divide_up(num_dst + 1, _BLOCK)
    source_programs = divide_up(num_src + 1, _BLOCK) if both else 0
    sums = facts.new_empty(target_programs + source_programs)
    launch(
        _group_kernel,
        (edge_programs + target_programs + source_programs, 1),
        (keys, ordered, order, facts, edges, items, pointers, sums),
        (
            total, room, num_src, num_dst, schedules.LONGEST,
            schedules.LONGEST_OF_SMALL, schedules.ITEMS_OF_SMALL,
            edge_programs, target_programs,
        ),
        (both, _BLOCK),
        warps=4,
    )  # fmt: skip
    target_pointer, _, source_pointer = pointers.split(spaces)
    # The only time that the host waits for the device.
    numbers = _COMPILE_ONLY_FACTS if is_compile_only() else facts.tolist()
    kept = total - numbers[4]
    cuts = [(cut >> 32, cut & 0xFFFFFFFF) for cut in numbers[7:9]]
    longest = schedules.longest_item(kept)
    plans = _schedules(items, pointers, sums, sizes, cuts, longest)
    _keep(target_pointer, plans[0], longest, numbers[5])
    parts = edges[:, :kept].unbind()
    by_target, by_source = (target_pointer, *parts[3:6]), None
    if both:
        _keep(source_pointer, plans[1], longest, numbers[6])
        by_source = (source_pointer, *parts[6:9])
        schedules.keep_slots_of_edges(parts[7], parts[9])
    lowest, highest = (-numbers[2], -numbers[3]), (numbers[0], numbers[1])
    return Grouped(parts[:3], by_target, by_source, lowest, highest)


def _aligned(number: int) -> int:
    return divide_up(number, 4) * 4


def _keep(
    pointer: Tensor, plan: schedules.Schedule, longest: int, largest_degree: int
) -> None:
    if largest_degree >= schedules.BUCKET:
        plan = plan._replace(items=schedules.longest_first(plan.items, longest))
    schedules.keep_schedule(pointer, plan)


def _schedules(
    items: Tensor,
    pointers: Tensor,
    sums: Tensor,
    sizes: tuple[int, int],
    cuts: list[tuple[int, int]],
    longest: int,
) -> list[schedules.Schedule]:
    """The schedules that `schedule.py` would make, by target and by source.

    Args:
        items: An item for each target, then one for each source.
        pointers: Their rows' pointers.
        sums: How many more items each program's rows need.
        sizes: The number of sources and of targets.
        cuts: Of each side, how many rows are cut and how many more items there are.
        longest: The most edges of an item.
    """
    num_src, num_dst = sizes
    (cut, more), (source_cut, source_more) = cuts
    merges = items.new_empty(_aligned(cut * 3) + source_cut * 3)
    if cut or source_cut:
        items = items.new_empty(num_dst + more + num_src + source_more, 4)
        launch(
            _cut_kernel,
            (sums.size(0), 1),
            (pointers, sums, items, merges),
            (num_dst, num_src, longest, divide_up(num_dst + 1, _BLOCK), more, cut),
            (_BLOCK,),
            warps=4,
        )
    first = num_dst + more
    source_merges = merges[_aligned(cut * 3) :].view(-1, 3)
    return [
        schedules.Schedule(items[:first], merges[: cut * 3].view(-1, 3), more + cut),
        schedules.Schedule(items[first:], source_merges, source_more + source_cut),
    ]
