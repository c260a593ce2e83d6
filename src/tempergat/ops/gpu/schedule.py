"""How rows of any degree are divided among GPU programs.

A long row is cut into chunks of even length, which different programs serve; their
partial results are merged in a fixed order, so that nothing depends on timing. Long
items come first, so that none is still running when the others have finished.
"""

import weakref
from typing import NamedTuple

import torch
from torch import Tensor

from tempergat.ops.cache import TensorCache
from tempergat.ops.graph import Rows
from tempergat.ops.torch_internals import edit_count

# The most edges of an item; fewer on small graphs, where one node of high degree would
# otherwise take longer than everything else.
LONGEST = 512
_LONGEST_OF_SMALL = 64
_ITEMS_OF_SMALL = 4096
_BUCKET = 64


class Schedule(NamedTuple):
    """The work of one pass over the rows.

    ``items`` [I, 4] holds row, first slot, end slot and the number of the partial
    result to write (-1: the item is the whole row). ``merges`` [M, 3] holds row,
    first partial and number of partials of every row that was cut.
    """

    items: Tensor
    merges: Tensor
    num_partials: int


def _whole_rows(pointer: Tensor) -> Schedule:
    """One item per row in the given order: needs no value on the host."""
    rows = torch.arange(pointer.size(0) - 1, device=pointer.device)
    columns = [rows, pointer[:-1], pointer[1:], torch.full_like(rows, -1)]
    items = torch.stack([c.to(pointer.dtype) for c in columns], dim=1)
    return Schedule(items, items.new_empty(0, 3), 0)


def _balanced(pointer: Tensor) -> Schedule:
    start = pointer.long()[:-1]
    degree = pointer.long()[1:] - start
    share = int(pointer[-1]) // _ITEMS_OF_SMALL
    longest = min(LONGEST, max(_LONGEST_OF_SMALL, share))
    chunks = (degree + longest - 1).div(longest, rounding_mode="floor").clamp(min=1)
    total = int(chunks.sum())
    if total == degree.numel():
        schedule = _whole_rows(pointer)
        items = schedule.items[_longest_first(degree)]
        return Schedule(items, schedule.merges, 0)
    row = torch.arange(degree.numel(), device=pointer.device)
    row = row.repeat_interleave(chunks, output_size=total)
    first = chunks.cumsum(0) - chunks
    k = torch.arange(total, device=pointer.device) - first[row]
    low = (degree[row] * k).div(chunks[row], rounding_mode="floor")
    high = (degree[row] * (k + 1)).div(chunks[row], rounding_mode="floor")
    cut = chunks[row] > 1
    partial = torch.where(cut, cut.cumsum(0) - 1, -1)
    items = torch.stack([row, start[row] + low, start[row] + high, partial], dim=1)
    items = items[_longest_first(high - low)].to(pointer.dtype)
    cut_row = (chunks > 1).nonzero().squeeze(1)
    merges = [cut_row, partial[first[cut_row]], chunks[cut_row]]
    num_partials = total - (degree.numel() - cut_row.numel())
    return Schedule(items, torch.stack(merges, 1).to(pointer.dtype), num_partials)


def _longest_first(length: Tensor) -> Tensor:
    """A stable order by length in coarse steps, which keeps neighbours together."""
    steps = length.div(_BUCKET, rounding_mode="floor")
    return torch.sort(steps, descending=True, stable=True).indices


def _capturing(tensor: Tensor) -> bool:
    return tensor.is_cuda and torch.cuda.is_current_stream_capturing()


# Without bounds: a schedule is needed in every call and dies with its rows.
_made = TensorCache(limit=2**62, numbers=2**62)


def schedule(pointer: Tensor) -> Schedule:
    """The schedule of these rows, made once for as long as they live unchanged.

    Making it reads three numbers from the device. While a CUDA graph is captured that
    is impossible; then every row is one item, which is right but not balanced.
    """
    found: Schedule | None = _made.find(pointer, "schedule")
    if found is not None:
        return found
    if _capturing(pointer):
        return _whole_rows(pointer)
    made = _balanced(pointer)
    _made.keep(pointer, "schedule", made)
    return made


def slots_by_source(by_target: Rows, by_source: Rows) -> Tensor:
    """For each slot by target, the slot by source of the same edge; made once."""
    target, source = by_target.position, by_source.position
    version = edit_count(source)
    found = _made.find(target, "slots_by_source")
    if found is not None and found[0]() is source and found[1] == version:
        made: Tensor = found[2]
        return made
    slot_of_edge = torch.empty_like(source)
    slot_of_edge[source.long()] = torch.arange(
        source.numel(), device=source.device, dtype=source.dtype
    )
    made = slot_of_edge[target.long()]
    if not _capturing(target):
        _made.keep(target, "slots_by_source", (weakref.ref(source), version, made))
    return made
