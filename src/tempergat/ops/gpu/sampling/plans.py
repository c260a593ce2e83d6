# mypy: allow-untyped-calls, allow-untyped-decorators
# mypy: disable-error-code="no-untyped-def, assignment"
"""How the rows of a sampled batch are divided among programs, found on the device.

`schedule.py` says what a schedule is. There the host reads how many rows must be cut;
here room is made for as many as there can be.
"""

from typing import NamedTuple

import triton
import triton.language as tl
from torch import Tensor

from tempergat.ops.gpu.schedule import Schedule


class Plan(NamedTuple):
    """A schedule with room for as many cut rows as there can be.

    Attributes:
        items: The schedule's items: at the end one per row, before them the further
            ones of rows that were cut, before them ones that do nothing.
        merges: The rows that were cut, then ones that do nothing.
    """

    items: Tensor
    merges: Tensor

    def exactly(self, items: int, partials: int, merges: int) -> Schedule:
        """The schedule, given what was cut."""
        used = self.items[self.merges.size(0) - items :]
        return Schedule(used, self.merges[:merges], partials)

    def padded(self) -> Schedule:
        """The schedule without knowing what was cut.

        Items that do nothing write to one more partial result. Merges that do nothing
        write zeros to the last row, which must not be in use.
        """
        extra = self.merges.size(0)
        return Schedule(self.items, self.merges, 2 * extra + 1 if extra else 0)


@triton.jit
def store_item(item, row, start, end, partial, mask):
    tl.store(item, row, mask=mask)
    tl.store(item + 1, start, mask=mask)
    tl.store(item + 2, end, mask=mask)
    tl.store(item + 3, partial, mask=mask)


@triton.jit
def schedule_rows(
    items_ptr, merges_ptr, facts_ptr, rows, inside, start, end, extra, longest
):
    """An item for each row; long rows get more, and a merge."""
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
