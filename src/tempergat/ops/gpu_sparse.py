"""Sparse features times weights on CUDA devices, through Triton.

One program owns one row of the result and a slice of its channels, so every sum has
one order and nothing is added to from two programs.
"""
# mypy: allow-untyped-decorators

import torch
import triton
import triton.language as tl
from torch import Tensor

from tempergat.ops.graph import Rows

_BLOCK = 256


@triton.jit
def _aggregate_kernel(  # type: ignore[no-untyped-def]
    pointer,
    other,
    position,
    values,
    x,
    out,
    sets,
    channels,
    width,
    BLOCK: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < width
    # Which of the sets of values belongs to a channel.
    chosen = column // channels
    total = tl.zeros([BLOCK], dtype=ACCUMULATOR)
    begin = tl.load(pointer + row)
    end = tl.load(pointer + row + 1)
    for slot in range(begin, end):
        source = tl.load(other + slot).to(tl.int64)
        element = tl.load(position + slot).to(tl.int64)
        value = tl.load(values + element * sets + chosen, mask=inside, other=0.0)
        features = tl.load(x + source * width + column, mask=inside, other=0.0)
        total += value.to(ACCUMULATOR) * features.to(ACCUMULATOR)
    tl.store(out + row * width + column, total, mask=inside)


def aggregate(rows: Rows, values_KH: Tensor, x_RHC: Tensor) -> Tensor:
    """`sparse.aggregate_plainly` by one kernel."""
    heads, channels = x_RHC.shape[1:]
    num_rows, width = rows.pointer.numel() - 1, heads * channels
    out = x_RHC.new_empty(num_rows, heads, channels)
    if out.numel() == 0:
        return out
    double = x_RHC.dtype == torch.float64
    grid = (num_rows, triton.cdiv(width, _BLOCK))
    _aggregate_kernel[grid](
        rows.pointer,
        rows.other,
        rows.position,
        values_KH.contiguous(),
        x_RHC.contiguous(),
        out,
        heads,
        channels,
        width,
        BLOCK=_BLOCK,
        ACCUMULATOR=tl.float64 if double else tl.float32,
        num_warps=2,
    )
    return out
