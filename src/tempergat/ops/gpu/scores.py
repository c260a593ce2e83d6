# mypy: allow-untyped-calls, allow-untyped-decorators
# mypy: disable-error-code="no-untyped-def, assignment"
"""Each node's part of GAT's logits in Triton, over the softmax temperature.

One kernel forward; one backward, and a second one that adds up its partial sums.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from tempergat.ops.gpu.common import tile_of_row
from tempergat.ops.gpu.launch import divide_up, launch, power_of_two
from tempergat.ops.gpu.sums import rows_tile
from tempergat.ops.reference import EPSILON

# The most programs of the backward pass, each of which keeps its own sum.
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
def _scores_kernel(
    z_ptr, first_att_ptr, second_att_ptr, theta_ptr, first_ptr, second_ptr,
    num_rows, num_heads, epsilon,
    KNOWN_HEADS: tl.constexpr, C: tl.constexpr, BLOCK_R: tl.constexpr,
    BLOCK_H: tl.constexpr, BLOCK_C: tl.constexpr, EXACT: tl.constexpr,
    SECOND: tl.constexpr, LEARNT: tl.constexpr,
):  # fmt: skip
    H, heads, in_heads, cell, in_row = tile_of_row(
        num_heads, KNOWN_HEADS, C, BLOCK_H, BLOCK_C, EXACT
    )
    temperature = _temperature(theta_ptr, heads, in_heads, epsilon, LEARNT)[:, None]
    rows = tl.program_id(0).to(tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R)
    inside = rows < num_rows
    z = tl.load(  # [R, H, C]
        z_ptr + rows[:, None, None] * (H * C) + cell[None],
        mask=inside[:, None, None] & in_row[None], other=0.0,
    ).to(tl.float32)  # fmt: skip
    att = tl.load(first_att_ptr + cell, mask=in_row, other=0.0) / temperature  # [H, C]
    target = rows[:, None] * H + heads[None, :]
    inside_heads = inside[:, None] & in_heads[None, :]
    tl.store(first_ptr + target, tl.sum(z * att[None], axis=2), mask=inside_heads)
    if SECOND:
        att = tl.load(second_att_ptr + cell, mask=in_row, other=0.0) / temperature
        tl.store(second_ptr + target, tl.sum(z * att[None], axis=2), mask=inside_heads)


@triton.jit(do_not_specialize=["num_rows", "second_rows", "num_heads"])
def _scores_backward_kernel(
    z_ptr, first_att_ptr, second_att_ptr, theta_ptr, dfirst_ptr, dsecond_ptr,
    dz_ptr, part_ptr, num_rows, second_rows, num_heads, epsilon,
    KNOWN_HEADS: tl.constexpr, C: tl.constexpr, BLOCK_R: tl.constexpr,
    BLOCK_H: tl.constexpr, BLOCK_C: tl.constexpr, EXACT: tl.constexpr,
    SECOND: tl.constexpr, LEARNT: tl.constexpr, ADD: tl.constexpr,
):  # fmt: skip
    H, heads, in_heads, cell, in_row = tile_of_row(
        num_heads, KNOWN_HEADS, C, BLOCK_H, BLOCK_C, EXACT
    )
    temperature = _temperature(theta_ptr, heads, in_heads, epsilon, LEARNT)[:, None]
    program = tl.program_id(0).to(tl.int64)
    first = tl.load(first_att_ptr + cell, mask=in_row, other=0.0) / temperature
    dfirst = tl.zeros([BLOCK_H, BLOCK_C], tl.float32)
    if SECOND:
        second = tl.load(second_att_ptr + cell, mask=in_row, other=0.0) / temperature
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
            has_second = (rows < second_rows)[:, None] & in_heads[None, :]
            dscore = tl.load(dsecond_ptr + place, mask=has_second, other=0.0)
            dz += dscore[:, :, None] * second[None]
            dsecond += tl.sum(dscore[:, :, None] * z, axis=0)
        if ADD:
            dz += tl.load(dz_ptr + cells, mask=inside_row, other=0.0).to(tl.float32)
        tl.store(dz_ptr + cells, dz.to(dz_ptr.dtype.element_ty), mask=inside_row)
    if SECOND:
        target = part_ptr + program * (2 * H * C) + cell
        tl.store(target + H * C, dsecond, mask=in_row)
    else:
        target = part_ptr + program * (H * C) + cell
    tl.store(target, dfirst, mask=in_row)


@triton.jit
def _sum_parts(
    part_ptr, cell, inside, which, num_parts, width,
    COUNT: tl.constexpr, BLOCK_P: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """The sum of one of COUNT rows over all partial results, [C]."""
    total = tl.zeros([BLOCK_P, BLOCK_C], tl.float32)
    for start in range(0, num_parts, BLOCK_P):
        parts = start + tl.arange(0, BLOCK_P)
        row = (parts.to(tl.int64) * COUNT + which) * width
        mask = (parts < num_parts)[:, None] & inside[None, :]
        total += tl.load(part_ptr + row[:, None] + cell[None, :], mask, 0.0)
    return tl.sum(total, axis=0)


@triton.jit(do_not_specialize=["num_parts", "num_heads"])
def _finish_kernel(
    part_ptr, first_att_ptr, second_att_ptr, theta_ptr,
    dfirst_att_ptr, dsecond_att_ptr, dtheta_ptr, num_parts, num_heads, epsilon,
    C: tl.constexpr, BLOCK_P: tl.constexpr, BLOCK_C: tl.constexpr,
    VECTORS: tl.constexpr, LEARNT: tl.constexpr, ALL_HEADS: tl.constexpr,
):  # fmt: skip
    # One program for all heads can add up the gradient of their one theta.
    head = tl.program_id(0)
    end = head + 1
    if ALL_HEADS:
        end = num_heads
    dtheta = tl.zeros([1], tl.float32)
    channels = tl.arange(0, BLOCK_C)
    inside = channels < C
    while head < end:
        one = head + tl.arange(0, 1)
        temperature = _temperature(theta_ptr, one, one >= 0, epsilon, LEARNT)
        cell = head * C + channels
        product = tl.zeros([BLOCK_C], tl.float32)
        for vector in tl.static_range(VECTORS):
            gradient = _sum_parts(
                part_ptr, cell, inside, vector, num_parts, num_heads * C,
                VECTORS, BLOCK_P, BLOCK_C,
            )  # fmt: skip
            if vector == 0:
                att = tl.load(first_att_ptr + cell, mask=inside, other=0.0)
                tl.store(dfirst_att_ptr + cell, gradient / temperature, mask=inside)
            else:
                att = tl.load(second_att_ptr + cell, mask=inside, other=0.0)
                tl.store(dsecond_att_ptr + cell, gradient / temperature, mask=inside)
            product += gradient * att
        if LEARNT:
            theta = tl.load(theta_ptr + one * (LEARNT - 1))
            dtemperature = -tl.sum(product, axis=0) / (temperature * temperature)
            dtheta += dtemperature * tl.sigmoid(theta)
        head += 1
    if LEARNT:
        tl.store(dtheta_ptr + tl.program_id(0) + tl.arange(0, 1), dtheta)


@triton.jit(do_not_specialize=["num_heads"])
def _divide_kernel(
    att_ptr, theta_ptr, out_ptr, num_heads, epsilon,
    C: tl.constexpr, BLOCK: tl.constexpr, LEARNT: tl.constexpr,
):  # fmt: skip
    cell = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = cell < num_heads * C
    temperature = _temperature(theta_ptr, cell // C, inside, epsilon, LEARNT)
    att = tl.load(att_ptr + cell, mask=inside, other=0.0)
    tl.store(out_ptr + cell, att / temperature, mask=inside)


def forward(z: Tensor, vectors: Vectors) -> list[Tensor]:
    """``<z, a> / T`` for each attention vector a, float32, [N, H] each."""
    rows, heads, _ = z.shape
    first, second, theta = vectors
    scores = [first.new_empty(rows, heads)]
    if second is not None:
        scores.append(first.new_empty(rows, heads))
    block, tiles, constants = rows_tile(z)
    launch(
        _scores_kernel,
        (divide_up(rows, block), tiles),
        (z, first, second, theta, scores[0], scores[-1]),
        (rows, heads, EPSILON),
        (*constants, second is not None, vectors.kind),
        warps=4,
    )
    return scores


def backward(
    z: Tensor, vectors: Vectors, dscores: tuple[Tensor, ...], dz: Tensor, *, add: bool
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Writes the gradient of z and returns those of the vectors and of theta.

    Args:
        z: The features.
        vectors: The attention vectors.
        dscores: The gradients of the scores. The second may have fewer rows than z.
        dz: Where the gradient of z goes.
        add: Whether it is added to what is there.
    """
    rows, heads, channels = z.shape
    first, second, theta = vectors
    block, tiles, constants = rows_tile(z)
    most = _PROGRAMS_OF_FEW if rows <= _FEW else _PROGRAMS
    programs = min(divide_up(rows, block), most)
    count = 1 if second is None else 2
    part = first.new_empty(programs, count, heads, channels)
    launch(
        _scores_backward_kernel,
        (programs, tiles),
        (z, first, second, theta, dscores[0], dscores[-1], dz, part),
        (rows, dscores[-1].size(0), heads, EPSILON),
        (*constants, second is not None, vectors.kind, add),
        warps=4,
    )
    return _finish(part, vectors)


def _finish(
    part_PAHC: Tensor, vectors: Vectors
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """The gradients of the vectors and of theta, from those of vectors over T."""
    programs, count, heads, channels = part_PAHC.shape
    first, second, theta = vectors
    dfirst = torch.empty_like(first)
    dsecond = None if second is None else torch.empty_like(second)
    # One program takes too long for the sums of many nodes.
    all_heads = vectors.kind == 1 and part_PAHC.numel() <= _MOST_FOR_ONE
    dtheta = None
    if theta is not None:
        dtheta = first.new_empty(theta.shape if all_heads else heads)
    width = power_of_two(channels)
    launch(
        _finish_kernel,
        (1 if all_heads else heads, 1),
        (part_PAHC, first, second, theta, dfirst, dsecond, dtheta),
        (programs, heads, EPSILON),
        (channels, max(1, 2048 // width), width, count, vectors.kind, all_heads),
        warps=4,
    )
    if dtheta is not None and vectors.kind == 1 and not all_heads:
        dtheta = dtheta.sum()
    return dfirst, dsecond, dtheta


def divide(att_HC: Tensor, theta: Tensor | None) -> Tensor:
    """An attention vector over the temperature."""
    if theta is None:
        return att_HC
    out = torch.empty_like(att_HC)
    heads, channels = att_HC.shape
    launch(
        _divide_kernel,
        (divide_up(out.numel(), _BLOCK), 1),
        (att_HC, theta, out),
        (heads, EPSILON),
        (channels, _BLOCK, Vectors(att_HC, None, theta).kind),
        warps=4,
    )
    return out


def divide_backward(
    dout: Tensor, att_HC: Tensor, theta: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The gradients of the vector and of theta; the latter without rows if absent."""
    if theta is None:
        return dout, dout.new_empty(0)
    part = dout.contiguous().view(1, 1, *att_HC.shape)
    datt, _, dtheta = _finish(part, Vectors(att_HC, None, theta))
    assert dtheta is not None
    return datt, dtheta
