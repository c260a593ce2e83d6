# mypy: allow-untyped-calls, allow-untyped-decorators
"""Sparse features times weights on CUDA devices, through Triton.

One program owns a piece of a row of the result and a slice of its channels; pieces are
added up in a fixed order, so nothing is added to from two programs.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from tempergat.ops.gpu.common import load_item
from tempergat.ops.gpu.launch import divide_up, launch, power_of_two
from tempergat.ops.gpu.schedule import schedule
from tempergat.ops.gpu.sums import merge_sum
from tempergat.ops.graph import Rows

# Elements that a program adds side by side, and channels of a program: so few that this
# slice of a few hundred features' weights stays in a multiprocessor's cache.
_ELEMENTS = 8
_CHANNELS = 64


@triton.jit(do_not_specialize=["sets"])
def _aggregate_kernel(  # type: ignore[no-untyped-def]
    items_ptr,
    other_ptr,
    position_ptr,
    values_ptr,
    x_ptr,
    part_ptr,
    out_ptr,
    sets,
    CHANNELS: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_W: tl.constexpr,
):
    width = sets * CHANNELS
    row, start, end, partial = load_item(items_ptr, tl.program_id(0).to(tl.int64))
    column = tl.program_id(1) * BLOCK_W + tl.arange(0, BLOCK_W)
    inside = column < width
    total = tl.zeros([BLOCK_E, BLOCK_W], part_ptr.dtype.element_ty)  # [E, W]
    for first in range(start, end, BLOCK_E):
        slots = first + tl.arange(0, BLOCK_E)  # [E]
        here = slots < end
        source = tl.load(other_ptr + slots, mask=here, other=0).to(tl.int64)
        element = tl.load(position_ptr + slots, mask=here, other=0).to(tl.int64)
        mask = here[:, None] & inside[None, :]
        # Which set of values belongs to a channel: one for the whole slice,
        # or one for each of its columns.
        if CHANNELS % BLOCK_W == 0:
            chosen = tl.program_id(1) // (CHANNELS // BLOCK_W)
            value = tl.load(values_ptr + element * sets + chosen, mask=here, other=0.0)
            value = value[:, None]
        else:
            place = element[:, None] * sets + (column // CHANNELS)[None, :]
            value = tl.load(values_ptr + place, mask=mask, other=0.0)
        place = source[:, None] * width + column[None, :]
        x = tl.load(x_ptr + place, mask=mask, other=0.0)  # [E, W]
        total += value.to(total.dtype) * x.to(total.dtype)
    result = tl.sum(total, axis=0)
    if partial >= 0:
        tl.store(part_ptr + partial * width + column, result, mask=inside)
    else:
        # Stored in the type of out; a name must not change its type in a branch.
        tl.store(out_ptr + row * width + column, result, mask=inside)


def run(rows: Rows, values_KH: Tensor, x_RHC: Tensor) -> Tensor:
    """`sparse.aggregate_plainly` by a kernel."""
    heads, channels = x_RHC.shape[1:]
    width = heads * channels
    out = x_RHC.new_empty(rows.pointer.numel() - 1, heads, channels)
    if out.numel() == 0:
        return out
    plan = schedule(rows.pointer)
    work = torch.float64 if x_RHC.dtype == torch.float64 else torch.float32
    part = out.new_empty(plan.num_partials, width, dtype=work)
    block = min(_CHANNELS, power_of_two(width))
    tensors = (
        plan.items,
        rows.other,
        rows.position,
        values_KH.contiguous(),
        x_RHC.contiguous(),
        part,
        out,
    )
    grid = (plan.items.size(0), divide_up(width, block))
    constants = (channels, _ELEMENTS, block)
    launch(_aggregate_kernel, grid, tensors, (heads,), constants, warps=1)
    merge_sum(plan, part, out)
    return out
