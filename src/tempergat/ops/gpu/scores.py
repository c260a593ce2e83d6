# mypy: allow-untyped-calls, allow-untyped-decorators
# mypy: disable-error-code="no-untyped-def, assignment"
"""Attention vectors over the temperature in Triton, and their gradients.

GAT's kernels sum up each node's part of the logits. Backward, a pass over the nodes
follows here, because scores' gradients are known only after the pass over edges.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from tempergat.ops.gpu.common import tile_of_row
from tempergat.ops.gpu.launching.launch import divide_up, launch, power_of_two
from tempergat.ops.gpu.sums import rows_tile
from tempergat.ops.reference import EPSILON

# The most programs of a pass that keeps a sum in each.
MOST_PARTS = 16384
# The most of the pass over targets.
_PROGRAMS = 1024
# The same for few nodes, whose sums are added up by one program.
_PROGRAMS_OF_FEW = 128
_FEW = 1 << 15
_MOST_FOR_ONE = 1 << 16
_BLOCK = 512


class Vectors(NamedTuple):
    """One or two attention vectors and the temperature they are divided by.

    Attributes:
        first: A vector for each head, float32, [H, C].
        second: Another, or None.
        theta: Gives the temperature of all heads, 0-d, or of each, [H]; None for 1.
    """

    first: Tensor
    second: Tensor | None
    theta: Tensor | None

    @property
    def kind(self) -> int:
        """0 for no temperature, 1 for one of all heads, 2 for one of each."""
        if self.theta is None:
            return 0
        return 1 if self.theta.dim() == 0 else 2


@triton.jit
def _temperature(theta_ptr, heads, in_heads, epsilon, LEARNT: tl.constexpr):
    """The temperature of each head: 1, or softplus(theta) + epsilon."""
    temperature = tl.full(heads.shape, 1.0, tl.float32)
    if LEARNT:
        # One theta for all heads, or one for each.
        theta = tl.load(theta_ptr + heads * (LEARNT - 1), mask=in_heads, other=0.0)
        x = tl.exp(tl.minimum(theta, 20.0))
        # log(1 + x), exact where x is small: the rounding of 1 + x cancels.
        rounded = 1.0 + x
        log = tl.log(rounded) * (x / tl.where(rounded == 1.0, 1.0, rounded - 1.0))
        log = tl.where(rounded == 1.0, x, log)
        temperature = tl.where(theta > 20.0, theta, log) + epsilon
    return temperature


@triton.jit(do_not_specialize=["num_rows", "num_heads"])
def _scores_backward_kernel(
    z_ptr, att_dst_ptr, dscore_src_ptr, dscore_dst_ptr, dz_ptr, part_src_ptr,
    part_dst_ptr, num_rows, num_heads,
    KNOWN_HEADS: tl.constexpr, C: tl.constexpr, BLOCK_R: tl.constexpr,
    BLOCK_H: tl.constexpr, BLOCK_C: tl.constexpr, EXACT: tl.constexpr,
    SRC: tl.constexpr, ADD: tl.constexpr,
):  # fmt: skip
    H, heads, in_heads, cell, in_row = tile_of_row(
        num_heads, KNOWN_HEADS, C, BLOCK_H, BLOCK_C, EXACT
    )
    program = tl.program_id(0).to(tl.int64)
    att = tl.load(att_dst_ptr + cell, mask=in_row, other=0.0)
    datt_src = tl.zeros([BLOCK_R, BLOCK_H, BLOCK_C], tl.float32)
    datt_dst = tl.zeros([BLOCK_R, BLOCK_H, BLOCK_C], tl.float32)
    for start in range(program * BLOCK_R, num_rows, tl.num_programs(0) * BLOCK_R):
        rows = start + tl.arange(0, BLOCK_R)
        inside = rows < num_rows
        cells = rows[:, None, None] * (H * C) + cell[None]
        inside_row = inside[:, None, None] & in_row[None]
        z = tl.load(z_ptr + cells, mask=inside_row, other=0.0).to(tl.float32)
        place = rows[:, None] * H + heads[None, :]
        inside_heads = inside[:, None] & in_heads[None, :]
        dscore = tl.load(dscore_dst_ptr + place, mask=inside_heads, other=0.0)
        dz = dscore[:, :, None] * att[None]
        datt_dst += dscore[:, :, None] * z
        if SRC:
            dscore = tl.load(dscore_src_ptr + place, mask=inside_heads, other=0.0)
            datt_src += dscore[:, :, None] * z
        if ADD:
            dz += tl.load(dz_ptr + cells, mask=inside_row, other=0.0).to(tl.float32)
        tl.store(dz_ptr + cells, dz.to(dz_ptr.dtype.element_ty), mask=inside_row)
    part = program * (H * C) + cell
    tl.store(part_dst_ptr + part, tl.sum(datt_dst, axis=0), mask=in_row)
    if SRC:
        tl.store(part_src_ptr + part, tl.sum(datt_src, axis=0), mask=in_row)


@triton.jit
def _sum_parts(
    part_ptr, cell, inside, num_parts, width,
    BLOCK_P: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """The sum over all partial results, [C]."""
    total = tl.zeros([BLOCK_P, BLOCK_C], tl.float32)
    for start in range(0, num_parts, BLOCK_P):
        parts = start + tl.arange(0, BLOCK_P)
        row = parts.to(tl.int64) * width
        mask = (parts < num_parts)[:, None] & inside[None, :]
        total += tl.load(part_ptr + row[:, None] + cell[None, :], mask, 0.0)
    return tl.sum(total, axis=0)


@triton.jit(do_not_specialize=["first_parts", "second_parts", "num_heads"])
def _finish_kernel(
    first_part_ptr, second_part_ptr, first_att_ptr, second_att_ptr, theta_ptr,
    dfirst_att_ptr, dsecond_att_ptr, dtheta_ptr,
    first_parts, second_parts, num_heads, epsilon,
    C: tl.constexpr, BLOCK_P: tl.constexpr, BLOCK_C: tl.constexpr,
    SECOND: tl.constexpr, LEARNT: tl.constexpr, ALL_HEADS: tl.constexpr,
):  # fmt: skip
    # One program for all heads can add up the gradient of their one theta.
    head = tl.program_id(0)
    end = head + 1
    if ALL_HEADS:
        end = num_heads
    dtheta = tl.zeros([1], tl.float32)
    channels = tl.arange(0, BLOCK_C)
    inside = channels < C
    width = num_heads * C
    while head < end:
        one = head + tl.arange(0, 1)
        temperature = _temperature(theta_ptr, one, one >= 0, epsilon, LEARNT)
        cell = head * C + channels
        gradient = _sum_parts(
            first_part_ptr, cell, inside, first_parts, width, BLOCK_P, BLOCK_C
        )
        tl.store(dfirst_att_ptr + cell, gradient / temperature, mask=inside)
        product = gradient * tl.load(first_att_ptr + cell, mask=inside, other=0.0)
        if SECOND:
            gradient = _sum_parts(
                second_part_ptr, cell, inside, second_parts, width, BLOCK_P, BLOCK_C
            )
            tl.store(dsecond_att_ptr + cell, gradient / temperature, mask=inside)
            product += gradient * tl.load(second_att_ptr + cell, inside, other=0.0)
        if LEARNT:
            theta = tl.load(theta_ptr + one * (LEARNT - 1))
            dtemperature = -tl.sum(product, axis=0) / (temperature * temperature)
            dtheta += dtemperature * tl.sigmoid(theta)
        head += 1
    if LEARNT:
        tl.store(dtheta_ptr + tl.program_id(0) + tl.arange(0, 1), dtheta)


@triton.jit(do_not_specialize=["num_heads"])
def _divide_kernel(
    first_ptr, second_ptr, theta_ptr, out_ptr, num_heads, epsilon,
    C: tl.constexpr, BLOCK: tl.constexpr, SECOND: tl.constexpr, LEARNT: tl.constexpr,
):  # fmt: skip
    cell = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = cell < num_heads * C
    temperature = _temperature(theta_ptr, cell // C, inside, epsilon, LEARNT)
    att = tl.load(first_ptr + cell, mask=inside, other=0.0)
    tl.store(out_ptr + cell, att / temperature, mask=inside)
    if SECOND:
        att = tl.load(second_ptr + cell, mask=inside, other=0.0)
        tl.store(out_ptr + num_heads * C + cell, att / temperature, mask=inside)


def divide(vectors: Vectors) -> tuple[Tensor, Tensor | None]:
    """The attention vectors over the temperature."""
    first, second, theta = vectors
    if theta is None:
        return first, second
    heads, channels = first.shape
    out = first.new_empty(1 if second is None else 2, heads, channels)
    launch(
        _divide_kernel,
        (divide_up(first.numel(), _BLOCK), 1),
        (first, second, theta, out),
        (heads, EPSILON),
        (channels, _BLOCK, second is not None, vectors.kind),
        warps=4,
    )
    return out[0], None if second is None else out[1]


def backward(
    z: Tensor,
    att_HC: Tensor,
    dscore: Tensor,
    dz: Tensor,
    dscore_src: Tensor | None = None,
    *,
    add: bool,
) -> tuple[Tensor, Tensor | None]:
    """Writes the targets' part of dz; returns partial sums for the vectors' gradients.

    Args:
        z: The features.
        att_HC: The targets' attention vector over the temperature.
        dscore: The gradient of the targets' scores, of the first rows of z.
        dz: Where the gradient of these rows goes.
        dscore_src: The gradient of their scores as sources, if it is to be summed too.
        add: Whether dz is added to what is there.

    Returns:
        The sums for the targets' vector [parts, H, C], and for the sources' or None.
    """
    rows, heads = dscore.shape
    block, tiles, constants = rows_tile(z)
    most = _PROGRAMS_OF_FEW if rows <= _FEW else _PROGRAMS
    programs = min(divide_up(rows, block), most)
    part = dscore.new_empty(programs, *att_HC.shape)
    part_src = None if dscore_src is None else torch.empty_like(part)
    launch(
        _scores_backward_kernel,
        (programs, tiles),
        (z, att_HC, dscore_src, dscore, dz, part_src, part),
        (rows, heads),
        (*constants, part_src is not None, add),
        warps=4,
    )
    return part, part_src


def finish(
    vectors: Vectors, first_part: Tensor, second_part: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of the vectors and of theta, without rows if absent.

    Args:
        vectors: The attention vectors.
        first_part: Partial sums for the gradient of the first over T, [parts, H, C].
        second_part: The same for the second.
    """
    first, second, theta = vectors
    heads, channels = first.shape
    if first_part.size(0) > _PROGRAMS:
        # Too many for one program a head.
        first_part = first_part.sum(0, keepdim=True)
    parts = (first_part.size(0), 0 if second_part is None else second_part.size(0))
    dfirst = torch.empty_like(first)
    dsecond = (
        first.new_empty(0, channels) if second is None else torch.empty_like(second)
    )
    # One program takes too long for the sums of many nodes.
    numbers = sum(parts) * heads * channels
    all_heads = vectors.kind == 1 and numbers <= _MOST_FOR_ONE
    dtheta = first.new_empty(0)
    if theta is not None:
        dtheta = first.new_empty(theta.shape if all_heads else heads)
    width = power_of_two(channels)
    launch(
        _finish_kernel,
        (1 if all_heads else heads, 1),
        (first_part, second_part, first, second, theta, dfirst, dsecond, dtheta),
        (*parts, heads, EPSILON),
        (channels, max(1, 2048 // width), width, second is not None, vectors.kind,
         all_heads),
        warps=4,
    )  # fmt: skip
    if vectors.kind == 1 and not all_heads:
        dtheta = dtheta.sum()
    return dfirst, dsecond, dtheta


def divide_backward(
    dout: Tensor, att_HC: Tensor, theta: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The gradients of the vector and of theta; the latter without rows if absent."""
    if theta is None:
        return dout, dout.new_empty(0)
    datt, _, dtheta = finish(Vectors(att_HC, None, theta), dout.contiguous()[None])
    return datt, dtheta
