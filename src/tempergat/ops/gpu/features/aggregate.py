# mypy: allow-untyped-calls, allow-untyped-decorators
# mypy: disable-error-code="no-untyped-def, assignment"
"""Sparse features times weights on CUDA devices, through Triton.

One program owns some pieces of rows of the result and a slice of the channels of one
model; pieces of a row are added up in a fixed order, so nothing is added to from two
programs.

What bounds it: every stored element reads a slice of a row of `x`. For Pubmed (988,000
elements, 500 features) and 50 models of 64 channels these are 12.6 GB, while `x`, the
values and the result together are 0.46 GB, or 0.11 ms of the memory of an H200.
Forward, a slice of all weights is 128 kB and stays in a multiprocessor's cache, which
delivers 128 bytes per cycle: 0.43 ms; measured 1.1 ms, as indices and values take half
as many loads again. Backward, the slices of all nodes take 5 MB and come from the
second-level cache: 1.6 ms. But the gradient of most nodes is exactly zero where few
nodes are labelled, and these rows are not read: 1.3 ms. Indices read ahead, larger
tiles, more warps and hints to the caches were slower.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from tempergat.ops.gpu.common import load_item
from tempergat.ops.gpu.launching.launch import divide_up, launch, power_of_two
from tempergat.ops.gpu.schedule import schedule
from tempergat.ops.gpu.sums import merge_sum
from tempergat.ops.graphs.graph import Rows

# Channels of a program: so few that this slice of a few hundred features' weights stays
# in a multiprocessor's cache. Numbers that a program multiplies side by side.
_CHANNELS = 64
_TILE = 512
# Pieces of rows that a program serves one after another, where they are short: starting
# a program takes time too.
_ITEMS = 8


@triton.jit(do_not_specialize=["width"])
def _used_kernel(x_ptr, used_ptr, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    nonzero = tl.zeros([BLOCK], tl.int32)
    for first in range(0, width, BLOCK):
        column = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * width + column, mask=column < width, other=0.0)
        nonzero |= (x != 0.0).to(tl.int32)
    tl.store(used_ptr + row, tl.max(nonzero, axis=0).to(tl.int8))


@triton.jit(do_not_specialize=["sets", "channels", "stored", "num_items"])
def _aggregate_kernel(
    items_ptr, other_ptr, position_ptr, values_ptr, used_ptr, x_ptr, part_ptr, out_ptr,
    sets, channels, stored, num_items,
    BLOCK_E: tl.constexpr, BLOCK_W: tl.constexpr, ITEMS: tl.constexpr,
    EXACT: tl.constexpr, IN_ORDER: tl.constexpr, SKIP: tl.constexpr,
):  # fmt: skip
    if EXACT:
        # So that the compiler sees by what offsets can be divided.
        channels = channels // BLOCK_W * BLOCK_W
    width = sets * channels
    slices = (channels + BLOCK_W - 1) // BLOCK_W
    chosen = tl.program_id(1) // slices
    channel = tl.program_id(1) % slices * BLOCK_W + tl.arange(0, BLOCK_W)
    inside = channel < channels
    column = chosen * channels + channel
    values_ptr += chosen.to(tl.int64) * stored
    first_item = tl.program_id(0).to(tl.int64) * ITEMS
    for k in range(tl.minimum(num_items - first_item, ITEMS).to(tl.int32)):
        row, start, end, partial = load_item(items_ptr, first_item + k)
        total = tl.zeros([BLOCK_E, BLOCK_W], part_ptr.dtype.element_ty)  # [E, W]
        for first in range(start, end, BLOCK_E):
            slots = first + tl.arange(0, BLOCK_E)  # [E]
            here = slots < end
            source = tl.load(other_ptr + slots, mask=here, other=0)
            element = slots
            if not IN_ORDER:
                element = tl.load(position_ptr + slots, mask=here, other=0)
            value = tl.load(values_ptr + element, mask=here, other=0.0)
            if SKIP:
                here = here & (tl.load(used_ptr + source) != 0)
            mask = here[:, None]
            if not EXACT:
                mask = mask & inside[None, :]
            place = source.to(tl.int64)[:, None] * width + column[None, :]
            x = tl.load(x_ptr + place, mask=mask, other=0.0)  # [E, W]
            total += value.to(total.dtype)[:, None] * x.to(total.dtype)
        result = tl.sum(total, axis=0)
        if partial >= 0:
            tl.store(part_ptr + partial * width + column, result, mask=inside)
        else:
            # Stored in the type of out; a name must not change its type in a branch.
            tl.store(out_ptr + row * width + column, result, mask=inside)


def run(
    rows: Rows,
    values_KH: Tensor,
    x_RHC: Tensor,
    *,
    in_order: bool = False,
    skip_zeros: bool = False,
) -> Tensor:
    """`sparse.aggregate_plainly` by a kernel.

    Args:
        rows: The elements by row.
        values_KH: Their values. No copy is made if those of a head are adjacent.
        x_RHC: The feature rows.
        in_order: Whether the positions are 0, 1, 2 and so on, as by node.
        skip_zeros: Look for feature rows that are zero, and do not read them.
    """
    heads, channels = x_RHC.shape[1:]
    width = heads * channels
    out = x_RHC.new_empty(rows.pointer.numel() - 1, heads, channels)
    if out.numel() == 0:
        return out
    plan = schedule(rows.pointer)
    work = torch.float64 if x_RHC.dtype == torch.float64 else torch.float32
    part = out.new_empty(plan.num_partials, width, dtype=work)
    x, values_HK = x_RHC.contiguous(), values_KH.t().contiguous()
    used = _used_rows(x) if skip_zeros else None
    block = min(_CHANNELS, power_of_two(channels))
    tensors = (plan.items, rows.other, rows.position, values_HK, used, x, part, out)
    items = plan.items.size(0)
    # Nodes have few elements each, features have many.
    per_program = _ITEMS if in_order else 1
    grid = (divide_up(items, per_program), heads * divide_up(channels, block))
    numbers = (heads, channels, values_HK.size(1), items)
    flags = (channels % block == 0, in_order, skip_zeros)
    constants = (min(64, _TILE // block), block, per_program, *flags)
    launch(_aggregate_kernel, grid, tensors, numbers, constants, warps=1)
    merge_sum(plan, part, out)
    return out


def _used_rows(x_RHC: Tensor) -> Tensor:
    """Which rows have a number that is not zero, int8, [R]."""
    width = x_RHC[0].numel() if x_RHC.size(0) else 0
    used = x_RHC.new_empty(x_RHC.size(0), dtype=torch.int8)
    block = min(1024, power_of_two(width))
    launch(_used_kernel, (x_RHC.size(0), 1), (x_RHC, used), (width,), (block,), warps=4)
    return used
