# mypy: allow-untyped-calls, allow-untyped-decorators
# mypy: disable-error-code="no-untyped-def, assignment"
"""Dropout and its seeds on CUDA devices, through Triton."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from tempergat.ops.gpu.common import fold_in, mix32
from tempergat.ops.gpu.launching.launch import divide_up, launch, power_of_two
from tempergat.ops.random import drop_threshold, keep_scale

_TILE = 1024
# Places in a row are numbers of 32 bits.
_MOST_IN_A_ROW = 2**31 - _TILE


@triton.jit(do_not_specialize=["rows", "width", "columns", "threshold"])
def _dropout_kernel(
    x_ptr, seeds_ptr, out_ptr, rows, width, columns, threshold, scale,
    SHARED: tl.constexpr, ONE_SEED: tl.constexpr, BY_FOUR: tl.constexpr,
    BLOCK_R: tl.constexpr, BLOCK_W: tl.constexpr,
):  # fmt: skip
    if BY_FOUR:
        # So that four numbers are stored at once.
        width = width // 4 * 4
    # One axis for both, because the second axis of a grid is short.
    across = (width + BLOCK_W - 1) // BLOCK_W
    row = (tl.program_id(0) // across).to(tl.int64) * BLOCK_R
    row += tl.arange(0, BLOCK_R)[:, None]
    place = tl.program_id(0) % across * BLOCK_W + tl.arange(0, BLOCK_W)[None, :]
    inside = (row < rows) & (place < width)
    if ONE_SEED:
        element = row * width + place
        seed = tl.load(seeds_ptr)
    else:
        element = row * columns + place % columns
        seed = tl.load(seeds_ptr + place // columns, mask=place < width, other=0)
    bits = mix32(element.to(tl.uint32) ^ seed.to(tl.uint32))
    bits = mix32(bits ^ (element >> 32).to(tl.uint32) ^ (seed >> 32).to(tl.uint32))
    source = element if SHARED else row * width + place
    x = tl.load(x_ptr + source, mask=inside, other=0.0)
    factor = tl.where((bits >> 8) >= threshold, scale, 0.0)
    tl.store(out_ptr + row * width + place, x.to(tl.float32) * factor, mask=inside)


def run(x_RXC: Tensor, seeds_B: Tensor, rate: float) -> Tensor:
    """The op of `ops/features/elementwise.py`."""
    (rows, sets, columns), seeds = x_RXC.shape, seeds_B.numel()
    out = x_RXC.new_empty(rows, seeds, columns)
    if seeds == 1 and out.numel() < _MOST_IN_A_ROW:
        # One long row, so that every program but the last has a full tile.
        rows, columns = 1, out.numel()
    width = seeds * columns
    block = min(_TILE, power_of_two(width))
    threshold, scale = drop_threshold(rate), keep_scale(rate, x_RXC.dtype)
    launch(
        _dropout_kernel,
        (divide_up(rows, _TILE // block) * divide_up(width, block), 1),
        (x_RXC.contiguous(), seeds_B.contiguous(), out),
        (rows, width, columns, threshold, scale),
        (sets < seeds, seeds == 1, width % 4 == 0, _TILE // block, block),
        warps=4,
    )
    return out


@triton.jit(do_not_specialize=["count"])
def _seeds_kernel(seed_ptr, data_ptr, out_ptr, count, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    data = tl.load(data_ptr + place, mask=place < count, other=0)
    seeds = fold_in(tl.load(seed_ptr), data.to(tl.int64))
    tl.store(out_ptr + place, seeds, mask=place < count)


def seeds(seed: Tensor, data: Tensor) -> Tensor:
    """`random.fold_in` of one seed and each of these numbers."""
    out, count = torch.empty_like(data, dtype=torch.int64), data.numel()
    grid = (divide_up(count, _TILE), 1)
    launch(_seeds_kernel, grid, (seed, data, out), (count,), (_TILE,), warps=1)
    return out
