"""How rows of any degree are divided among GPU programs.

A long row is cut into chunks of even length, which different programs serve; their
partial results are merged in a fixed order, so that nothing depends on timing. On large
graphs long items come first, so that none is still running when the others have
finished.
"""

import weakref
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from tempergat.ops.graphs.cache import TensorCache
from tempergat.ops.graphs.graph import Rows
from tempergat.ops.torch_internals import edit_count

# The most edges of an item; fewer on small graphs, where one node of high degree would
# otherwise take longer than everything else.
LONGEST = 512
LONGEST_OF_SMALL = 64
ITEMS_OF_SMALL = 4096
# Lengths that differ by less count as equal.
BUCKET = 64
# The edges of a graph on which the operations of the host take longer than the work.
_SMALL = 1 << 18
# The mean number of edges up to which items are short, and how many of them are more
# than a device serves at once.
_SHORT = 8
_MANY = 1 << 13


class Work(NamedTuple):
    """The numbers that a kernel takes of a pass over the rows of all copies.

    Attributes:
        num_items: Items of one copy.
        own_rows: Rows of one copy.
        other_rows: Nodes at the other ends of the edges, of one copy.
        num_edges: Edges of one copy.
        edge_step: How many rows further the next copy has its edges' inputs; 0 where
            all copies share them.
        num_partials: Partial results of one copy.
    """

    num_items: int
    own_rows: int
    other_rows: int
    num_edges: int
    edge_step: int
    num_partials: int

    def is_short(self, copies: int) -> bool:
        """Whether rows are many and short: starting a program for each takes time."""
        short = self.num_edges <= _SHORT * self.num_items
        return short and self.num_items * copies >= _MANY


class Schedule(NamedTuple):
    """The work of one pass over the rows.

    ``items`` [I, 4] holds row, first slot, end slot and the number of the partial
    result to write (-1: the item is the whole row). ``merges`` [M, 3] holds row,
    first partial and number of partials of every row that was cut.
    """

    items: Tensor
    merges: Tensor
    num_partials: int

    def new_partials(self, like: Tensor, *shape: int, copies: int = 1) -> Tensor:
        """Memory for the partial results, float32 of this shape each.

        Args:
            like: Any float32 tensor of the device; returned if there are none.
            shape: The shape of one partial result.
            copies: How many copies the graph has.
        """
        if self.num_partials == 0:
            return like
        return like.new_empty(copies * self.num_partials, *shape)

    def work(
        self, rows: Rows, other_rows: int, copies: int, edges: Sequence[Tensor | None]
    ) -> Work:
        """The numbers of a pass over these rows.

        Args:
            rows: The rows of one copy.
            other_rows: Nodes at the other ends of the edges, of one copy.
            copies: How many copies the graph has.
            edges: The inputs with a row per edge, of one copy or of all.
        """
        items, slots = self.items.size(0), rows.other.size(0)
        step = slots if any(x is not None and x.size(0) > slots for x in edges) else 0
        own_rows = rows.pointer.size(0) - 1
        return Work(items, own_rows, other_rows, slots, step, self.num_partials)


def _whole_rows(pointer: Tensor) -> Schedule:
    """One item per row in the given order: needs no value on the host."""
    rows = torch.arange(pointer.size(0) - 1, device=pointer.device)
    columns = [rows, pointer[:-1], pointer[1:], torch.full_like(rows, -1)]
    items = torch.stack([c.to(pointer.dtype) for c in columns], dim=1)
    return Schedule(items, items.new_empty(0, 3), 0)


def longest_item(slots: int) -> int:
    """The most edges of an item, for rows with so many edges together."""
    return min(LONGEST, max(LONGEST_OF_SMALL, slots // ITEMS_OF_SMALL))


def _balanced(pointer: Tensor) -> Schedule:
    start = pointer.long()[:-1]
    degree = pointer.long()[1:] - start
    longest = longest_item(int(pointer[-1]))
    chunks = (degree + longest - 1).div(longest, rounding_mode="floor").clamp(min=1)
    total = int(chunks.sum())
    if total == degree.numel():
        whole = _whole_rows(pointer)
        return whole._replace(items=longest_first(whole.items, longest))
    row = torch.arange(degree.numel(), device=pointer.device)
    row = row.repeat_interleave(chunks, output_size=total)
    first = chunks.cumsum(0) - chunks
    k = torch.arange(total, device=pointer.device) - first[row]
    low = (degree[row] * k).div(chunks[row], rounding_mode="floor")
    high = (degree[row] * (k + 1)).div(chunks[row], rounding_mode="floor")
    cut = chunks[row] > 1
    partial = torch.where(cut, cut.cumsum(0) - 1, -1)
    items = torch.stack([row, start[row] + low, start[row] + high, partial], dim=1)
    items = longest_first(items.to(pointer.dtype), longest)
    cut_row = (chunks > 1).nonzero().squeeze(1)
    merges = [cut_row, partial[first[cut_row]], chunks[cut_row]]
    num_partials = total - (degree.numel() - cut_row.numel())
    return Schedule(items, torch.stack(merges, 1).to(pointer.dtype), num_partials)


def longest_first(items: Tensor, longest: int) -> Tensor:
    """Items by their length in coarse steps; neighbours of equal length stay together.

    The items of a small graph, which are all short, stay in their order.
    """
    if longest <= BUCKET:
        return items
    steps = (items[:, 2] - items[:, 1]).div(BUCKET, rounding_mode="floor")
    return items[torch.sort(steps, descending=True, stable=True).indices]


def _capturing(tensor: Tensor) -> bool:
    return tensor.is_cuda and torch.cuda.is_current_stream_capturing()


# Without bounds: a schedule is needed in every call and dies with its rows.
_made = TensorCache(limit=2**62, numbers=2**62)


def schedule(pointer: Tensor) -> Schedule:
    """The schedule of these rows, made once for as long as they live unchanged.

    Making it reads three numbers from the device. While a CUDA graph is captured that
    is impossible; then every row is one item, which is right but not balanced.
    """
    known: Schedule | None = _made.find(pointer, "schedule")
    if known is not None:
        return known
    if _capturing(pointer):
        return _whole_rows(pointer)
    made = _balanced(pointer)
    keep_schedule(pointer, made)
    return made


def keep_schedule(pointer: Tensor, made: Schedule) -> None:
    """Keeps the schedule of these rows for as long as they live unchanged."""
    _made.keep(pointer, "schedule", made)


def keep_slots_of_edges(position: Tensor, slots: Tensor) -> None:
    """Keeps the slot of each edge by source, where it is known already."""
    _made.keep(position, "slots", slots)


def keep_slots_by_source(by_target: Rows, by_source: Rows, slots: Tensor) -> None:
    """Keeps what `slots_by_source` returns, where it is known already."""
    source = by_source.position
    known = (weakref.ref(source), edit_count(source), slots)
    _made.keep(by_target.position, "slots_by_source", known)


def slots_by_source(by_target: Rows, by_source: Rows) -> tuple[Tensor, Tensor | None]:
    """For each slot by target, the slot by source of the same edge.

    It is made once and kept, but for a small graph that was grouped on the GPU: there,
    looking up two tables in the kernel is quicker than one more operation of the host.

    Returns:
        The slots, and None; or for each slot the edge, and the slot of every edge.
    """
    target, source = by_target.position, by_source.position
    version = edit_count(source)
    known = _made.find(target, "slots_by_source")
    if known is not None and known[0]() is source and known[1] == version:
        return known[2], None
    slot_of_edge = _made.find(source, "slots")
    if slot_of_edge is not None and source.numel() <= _SMALL:
        return target, slot_of_edge
    if slot_of_edge is None:
        slots = torch.arange(source.numel(), device=source.device, dtype=source.dtype)
        slot_of_edge = torch.empty_like(source).index_copy_(0, source.long(), slots)
    made = slot_of_edge.index_select(0, target)
    if not _capturing(target):
        keep_slots_by_source(by_target, by_source, made)
    return made, None
