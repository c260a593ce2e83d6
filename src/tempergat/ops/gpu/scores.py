# mypy: allow-untyped-calls, allow-untyped-decorators
# mypy: disable-error-code="no-untyped-def, assignment"
"""Each node's part of GAT's logits in Triton: one pass forward, one backward."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from tempergat.ops.gpu.common import tile_of_row
from tempergat.ops.gpu.launch import divide_up, launch
from tempergat.ops.gpu.tiles import choose_tile

# The most programs of the backward pass, each of which keeps its own sum.
_PROGRAMS = 1024


@triton.jit(do_not_specialize=["num_rows", "num_heads"])
def _forward_kernel(
    z_ptr, att_ptr, first_ptr, second_ptr, num_rows, num_heads,
    KNOWN_HEADS: tl.constexpr, C: tl.constexpr, BLOCK_R: tl.constexpr,
    BLOCK_H: tl.constexpr, BLOCK_C: tl.constexpr, EXACT: tl.constexpr,
    SECOND: tl.constexpr,
):  # fmt: skip
    H, heads, in_heads, cell, in_row = tile_of_row(
        num_heads, KNOWN_HEADS, C, BLOCK_H, BLOCK_C, EXACT
    )
    rows = tl.program_id(0).to(tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R)
    inside = rows < num_rows
    z = tl.load(  # [R, H, C]
        z_ptr + rows[:, None, None] * (H * C) + cell[None],
        mask=inside[:, None, None] & in_row[None], other=0.0,
    ).to(tl.float32)  # fmt: skip
    att = tl.load(att_ptr + cell, mask=in_row, other=0.0)  # [H, C]
    target = rows[:, None] * H + heads[None, :]
    inside_heads = inside[:, None] & in_heads[None, :]
    tl.store(first_ptr + target, tl.sum(z * att[None], axis=2), mask=inside_heads)
    if SECOND:
        att = tl.load(att_ptr + H * C + cell, mask=in_row, other=0.0)
        tl.store(second_ptr + target, tl.sum(z * att[None], axis=2), mask=inside_heads)


@triton.jit(do_not_specialize=["num_rows", "num_heads"])
def _backward_kernel(
    z_ptr, att_ptr, dfirst_ptr, dsecond_ptr, dz_ptr, part_ptr, num_rows, num_heads,
    KNOWN_HEADS: tl.constexpr, C: tl.constexpr, BLOCK_R: tl.constexpr,
    BLOCK_H: tl.constexpr, BLOCK_C: tl.constexpr, EXACT: tl.constexpr,
    SECOND: tl.constexpr,
):  # fmt: skip
    H, heads, in_heads, cell, in_row = tile_of_row(
        num_heads, KNOWN_HEADS, C, BLOCK_H, BLOCK_C, EXACT
    )
    program = tl.program_id(0).to(tl.int64)
    first = tl.load(att_ptr + cell, mask=in_row, other=0.0)  # [H, C]
    dfirst = tl.zeros([BLOCK_H, BLOCK_C], tl.float32)
    if SECOND:
        second = tl.load(att_ptr + H * C + cell, mask=in_row, other=0.0)
        dsecond = tl.zeros([BLOCK_H, BLOCK_C], tl.float32)
    for start in range(program * BLOCK_R, num_rows, tl.num_programs(0) * BLOCK_R):
        rows = start + tl.arange(0, BLOCK_R)
        inside = rows < num_rows
        cells = rows[:, None, None] * (H * C) + cell[None]
        inside_row = inside[:, None, None] & in_row[None]
        z = tl.load(z_ptr + cells, mask=inside_row, other=0.0).to(tl.float32)
        place = rows[:, None] * H + heads[None, :]
        inside_heads = inside[:, None] & in_heads[None, :]
        dscore = tl.load(dfirst_ptr + place, mask=inside_heads, other=0.0)[:, :, None]
        dz = dscore * first[None]
        dfirst += tl.sum(dscore * z, axis=0)
        if SECOND:
            dscore = tl.load(dsecond_ptr + place, mask=inside_heads, other=0.0)
            dz += dscore[:, :, None] * second[None]
            dsecond += tl.sum(dscore[:, :, None] * z, axis=0)
        tl.store(dz_ptr + cells, dz.to(dz_ptr.dtype.element_ty), mask=inside_row)
    if SECOND:
        target = part_ptr + program * (2 * H * C) + cell
        tl.store(target + H * C, dsecond, mask=in_row)
    else:
        target = part_ptr + program * (H * C) + cell
    tl.store(target, dfirst, mask=in_row)


def _tile(z: Tensor) -> tuple[int, int, tuple[int, ...]]:
    """How many rows a program has, how many tiles a row, and the kernels' constants."""
    _, heads, channels = z.shape
    tile = choose_tile(heads, channels, z.element_size(), 256, 256)
    block = max(1, 1024 // (tile.heads * tile.channels))
    known, _, _, *blocks, _, exact = tile.constants(heads, channels)
    constants = (known, channels, block, *blocks, exact)
    return block, divide_up(heads, tile.heads), constants


def forward(z: Tensor, att: Tensor) -> list[Tensor]:
    """``(z * att[a]).sum(-1)`` for each attention vector, float32, [N, H] each."""
    rows, heads, _ = z.shape
    scores = [att.new_empty(rows, heads) for _ in att]
    block, tiles, constants = _tile(z)
    launch(
        _forward_kernel,
        (divide_up(rows, block), tiles),
        (z.contiguous(), att.contiguous(), scores[0], scores[-1]),
        (rows, heads),
        (*constants, len(scores) > 1),
        warps=4,
    )
    return scores


def backward(
    z: Tensor, att: Tensor, dscores: tuple[Tensor, ...]
) -> tuple[Tensor, Tensor]:
    """The gradients of z and att."""
    rows, heads, _ = z.shape
    z = z.contiguous()
    dz = torch.empty_like(z)
    block, tiles, constants = _tile(z)
    programs = min(divide_up(rows, block), _PROGRAMS)
    part = att.new_empty(programs, *att.shape)
    first, last = dscores[0].contiguous(), dscores[-1].contiguous()
    launch(
        _backward_kernel,
        (programs, tiles),
        (z, att.contiguous(), first, last, dz, part),
        (rows, heads),
        (*constants, len(dscores) > 1),
        warps=4,
    )
    return dz, part.sum(0)
