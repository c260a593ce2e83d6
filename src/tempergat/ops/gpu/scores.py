# mypy: allow-untyped-calls, allow-untyped-decorators
# mypy: disable-error-code="no-untyped-def, assignment"
"""Each node's part of GAT's logits in Triton, over the softmax temperature.

One kernel forward; one backward, and a second one that adds up its partial sums.
"""

import triton
import triton.language as tl
from torch import Tensor

from tempergat.ops.calls import Vectors
from tempergat.ops.gpu.common import tile_of_row
from tempergat.ops.gpu.launch import divide_up, launch, power_of_two
from tempergat.ops.gpu.tiles import choose_tile

# The most programs of the backward pass, each of which keeps its own sum.
_PROGRAMS = 1024


@triton.jit
def _temperature(theta_ptr, heads, in_heads, number, LEARNT: tl.constexpr):
    """The temperature of each head: the number, or softplus(theta) plus the number."""
    temperature = tl.zeros(heads.shape, tl.float32) + number
    if LEARNT:
        # One theta for all heads, or one for each.
        theta = tl.load(theta_ptr + heads * (LEARNT - 1), mask=in_heads, other=0.0)
        x = tl.exp(tl.minimum(theta, 20.0))
        # log(1 + x), exact where x is small: the rounding of 1 + x cancels.
        rounded = 1.0 + x
        log = tl.log(rounded) * (x / tl.where(rounded == 1.0, 1.0, rounded - 1.0))
        log = tl.where(rounded == 1.0, x, log)
        temperature += tl.where(theta > 20.0, theta, log)
    return temperature


@triton.jit(do_not_specialize=["num_rows", "num_heads"])
def _forward_kernel(
    z_ptr, first_att_ptr, second_att_ptr, theta_ptr, first_ptr, second_ptr,
    num_rows, num_heads, number,
    KNOWN_HEADS: tl.constexpr, C: tl.constexpr, BLOCK_R: tl.constexpr,
    BLOCK_H: tl.constexpr, BLOCK_C: tl.constexpr, EXACT: tl.constexpr,
    SECOND: tl.constexpr, LEARNT: tl.constexpr,
):  # fmt: skip
    H, heads, in_heads, cell, in_row = tile_of_row(
        num_heads, KNOWN_HEADS, C, BLOCK_H, BLOCK_C, EXACT
    )
    temperature = _temperature(theta_ptr, heads, in_heads, number, LEARNT)[:, None]
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
def _backward_kernel(
    z_ptr, first_att_ptr, second_att_ptr, theta_ptr, dfirst_ptr, dsecond_ptr,
    dz_ptr, part_ptr, num_rows, second_rows, num_heads, number,
    KNOWN_HEADS: tl.constexpr, C: tl.constexpr, BLOCK_R: tl.constexpr,
    BLOCK_H: tl.constexpr, BLOCK_C: tl.constexpr, EXACT: tl.constexpr,
    SECOND: tl.constexpr, LEARNT: tl.constexpr, ADD: tl.constexpr,
):  # fmt: skip
    H, heads, in_heads, cell, in_row = tile_of_row(
        num_heads, KNOWN_HEADS, C, BLOCK_H, BLOCK_C, EXACT
    )
    temperature = _temperature(theta_ptr, heads, in_heads, number, LEARNT)[:, None]
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


@triton.jit(do_not_specialize=["num_parts", "num_heads"])
def _finish_kernel(
    part_ptr, first_att_ptr, second_att_ptr, theta_ptr,
    dfirst_att_ptr, dsecond_att_ptr, dtheta_ptr, num_parts, num_heads, number,
    C: tl.constexpr, BLOCK_P: tl.constexpr, BLOCK_C: tl.constexpr,
    VECTORS: tl.constexpr, LEARNT: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(0)
    one = head + tl.arange(0, 1)
    temperature = _temperature(theta_ptr, one, one >= 0, number, LEARNT)
    channels = tl.arange(0, BLOCK_C)
    inside = channels < C
    cell = head * C + channels
    product = tl.zeros([BLOCK_C], tl.float32)
    for vector in tl.static_range(VECTORS):
        total = tl.zeros([BLOCK_P, BLOCK_C], tl.float32)
        for start in range(0, num_parts, BLOCK_P):
            parts = start + tl.arange(0, BLOCK_P)
            row = (parts.to(tl.int64) * VECTORS + vector) * num_heads * C
            mask = (parts < num_parts)[:, None] & inside[None, :]
            total += tl.load(part_ptr + row[:, None] + cell[None, :], mask, 0.0)
        gradient = tl.sum(total, axis=0)
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
        tl.store(dtheta_ptr + one, dtemperature * tl.sigmoid(theta))


def _tile(z: Tensor) -> tuple[int, int, tuple[int, ...]]:
    """How many rows a program has, how many tiles a row, and the kernels' constants."""
    _, heads, channels = z.shape
    tile = choose_tile(heads, channels, z.element_size(), 256, 256)
    block = max(1, 1024 // (tile.heads * tile.channels))
    known, _, _, *blocks, _, exact = tile.constants(heads, channels)
    constants = (known, channels, block, *blocks, exact)
    return block, divide_up(heads, tile.heads), constants


def forward(z: Tensor, vectors: Vectors) -> list[Tensor]:
    """``<z, a> / T`` for each attention vector a, float32, [N, H] each."""
    rows, heads, _ = z.shape
    first, second, theta, number = vectors
    scores = [first.new_empty(rows, heads)]
    if second is not None:
        scores.append(first.new_empty(rows, heads))
    block, tiles, constants = _tile(z)
    launch(
        _forward_kernel,
        (divide_up(rows, block), tiles),
        (z, first, second, theta, scores[0], scores[-1]),
        (rows, heads, number),
        (*constants, second is not None, vectors.kind),
        warps=4,
    )
    return scores


def backward(
    z: Tensor, vectors: Vectors, dscores: tuple[Tensor, ...], dz: Tensor, *, add: bool
) -> Vectors:
    """Writes the gradient of z and returns those of the vectors and of theta.

    Args:
        z: The features.
        vectors: The attention vectors.
        dscores: The gradients of the scores. The second may have fewer rows than z.
        dz: Where the gradient of z goes.
        add: Whether it is added to what is there.
    """
    rows, heads, channels = z.shape
    first, second, theta, number = vectors
    block, tiles, constants = _tile(z)
    programs = min(divide_up(rows, block), _PROGRAMS)
    count = 1 if second is None else 2
    part = first.new_empty(programs, count, heads, channels)
    launch(
        _backward_kernel,
        (programs, tiles),
        (z, first, second, theta, dscores[0], dscores[-1], dz, part),
        (rows, dscores[-1].size(0), heads, number),
        (*constants, second is not None, vectors.kind, add),
        warps=4,
    )
    dfirst = first.new_empty(first.shape)
    dsecond = None if second is None else first.new_empty(second.shape)
    dtheta = None if theta is None else first.new_empty(heads)
    width = power_of_two(channels)
    launch(
        _finish_kernel,
        (heads, 1),
        (part, first, second, theta, dfirst, dsecond, dtheta),
        (programs, heads, number),
        (channels, max(1, 2048 // width), width, count, vectors.kind),
        warps=4,
    )
    if theta is not None and dtheta is not None and theta.dim() == 0:
        dtheta = dtheta.sum()
    return Vectors(dfirst, dsecond, dtheta, number)
