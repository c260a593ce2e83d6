# mypy: allow-untyped-calls, allow-untyped-decorators
# mypy: disable-error-code="no-untyped-def, assignment"
"""The feature gate in Triton: one pass forward, one backward."""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from tempergat.ops.calls import Backward, Forward, changes_output
from tempergat.ops.gpu.common import tile_of_row
from tempergat.ops.gpu.launching.launch import divide_up, launch
from tempergat.ops.gpu.sums import rows_tile, store_statistics

BLOCK = 2048
# The most programs of the backward pass that adds up columns.
_PROGRAMS = 1024


@triton.jit(do_not_specialize=["count", "width"])
def _forward_kernel(
    logit_ptr, x_ptr, bias_ptr, out_ptr, part_ptr, count, width,
    BLOCK: tl.constexpr, BIAS: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0).to(tl.int64)
    offset = program * BLOCK + tl.arange(0, BLOCK)
    inside = offset < count
    # Past the end the gate is sigmoid(-inf) = 0.
    logit = tl.load(logit_ptr + offset, mask=inside, other=-float("inf"))
    x = tl.load(x_ptr + offset, mask=inside, other=0.0)
    gate = tl.sigmoid(logit.to(tl.float32))
    out = x.to(tl.float32) * gate
    if BIAS:
        out += tl.load(bias_ptr + offset % width, mask=inside, other=0.0)
    tl.store(out_ptr + offset, out.to(out_ptr.dtype.element_ty), mask=inside)
    tl.store(part_ptr + program, tl.sum(gate, axis=0))


@triton.jit(do_not_specialize=["count"])
def _backward_kernel(
    dout_ptr, dsums_ptr, logit_ptr, x_ptr, dlogit_ptr, dx_ptr, count,
    BLOCK: tl.constexpr, DSUMS: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0).to(tl.int64)
    offset = program * BLOCK + tl.arange(0, BLOCK)
    inside = offset < count
    dout = tl.load(dout_ptr + offset, mask=inside, other=0.0).to(tl.float32)
    logit = tl.load(logit_ptr + offset, mask=inside, other=0.0).to(tl.float32)
    x = tl.load(x_ptr + offset, mask=inside, other=0.0).to(tl.float32)
    gate = tl.sigmoid(logit)
    dgate = dout * x
    if DSUMS:
        dgate += tl.load(dsums_ptr + program)
    dlogit = dgate * gate * (1.0 - gate)
    tl.store(dlogit_ptr + offset, dlogit.to(dlogit_ptr.dtype.element_ty), mask=inside)
    tl.store(dx_ptr + offset, (dout * gate).to(dx_ptr.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["num_rows", "num_heads"])
def _backward_rows_kernel(
    dout_ptr, dsums_ptr, logit_ptr, x_ptr, lse_ptr, score_ptr,
    dlogit_ptr, dx_ptr, statistics_ptr, part_ptr, num_rows, num_heads,
    KNOWN_HEADS: tl.constexpr, C: tl.constexpr, BLOCK_R: tl.constexpr,
    BLOCK_H: tl.constexpr, BLOCK_C: tl.constexpr, EXACT: tl.constexpr,
    SCORE: tl.constexpr, SPLIT_LSE: tl.constexpr, DSUMS: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    H, heads, in_heads, cell, in_row = tile_of_row(
        num_heads, KNOWN_HEADS, C, BLOCK_H, BLOCK_C, EXACT
    )
    program = tl.program_id(0).to(tl.int64)
    dout_sum = tl.zeros([BLOCK_R, BLOCK_H, BLOCK_C], tl.float32)
    for start in range(program * BLOCK_R, num_rows, tl.num_programs(0) * BLOCK_R):
        rows = start + tl.arange(0, BLOCK_R)
        inside = (rows < num_rows)[:, None, None] & in_row[None]
        offset = rows[:, None, None] * (H * C) + cell[None]  # [R, H, C]
        dout = tl.load(dout_ptr + offset, mask=inside, other=0.0).to(tl.float32)
        logit = tl.load(logit_ptr + offset, mask=inside, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + offset, mask=inside, other=0.0).to(tl.float32)
        gate = tl.sigmoid(logit)
        dgate = dout * x
        if DSUMS:
            dgate += tl.load(dsums_ptr + offset // BLOCK, mask=inside, other=0.0)
        dlogit = dgate * gate * (1.0 - gate)
        dx = dout * gate
        tl.store(dlogit_ptr + offset, dlogit.to(dlogit_ptr.dtype.element_ty), inside)
        tl.store(dx_ptr + offset, dx.to(dx_ptr.dtype.element_ty), mask=inside)
        dout_sum += dout
        delta = tl.sum(dx * x, axis=2)  # [R, H]
        here = (rows < num_rows)[:, None] & in_heads[None, :]
        store_statistics(
            delta, rows, here, heads, lse_ptr, score_ptr, statistics_ptr, H,
            SCORE, SPLIT_LSE,
        )  # fmt: skip
    dout_sum = tl.sum(dout_sum, axis=0)
    tl.store(part_ptr + program * (H * C) + cell, dout_sum, mask=in_row)


@triton.jit(do_not_specialize=["width", "count"])
def _close_kernel(logit_ptr, in_use_ptr, width, count, BLOCK: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * BLOCK
    limit = tl.load(in_use_ptr).to(tl.int64) * width
    # Most programs have nothing to do.
    if first + BLOCK > limit:
        offset = first + tl.arange(0, BLOCK)
        closed = tl.full([BLOCK], -float("inf"), tl.float32)
        padding = (offset >= limit) & (offset < count)
        tl.store(logit_ptr + offset, closed.to(logit_ptr.dtype.element_ty), padding)


def close(logit: Tensor, in_use: Tensor) -> None:
    """Sets the logits of all rows after the first ``in_use`` to minus infinity."""
    count, block = logit.numel(), 8 * BLOCK
    numbers = (count // max(logit.size(0), 1), count)
    grid = (divide_up(count, block), 1)
    launch(_close_kernel, grid, (logit, in_use), numbers, (block,), 4)


def forward(
    logit: Tensor, x: Tensor, bias: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The gated features and partial sums of the gate, float32, one per BLOCK.

    Args:
        logit: The gate before its sigmoid.
        x: The features.
        bias: What is added to every row of the result, [columns], if anything.
    """
    logit, x = logit.contiguous(), x.contiguous()
    out, count = torch.empty_like(x), x.numel()
    programs = divide_up(count, BLOCK)
    part = x.new_empty(programs, dtype=torch.float32)
    tensors = (logit, x, bias, out, part)
    numbers, constants = (count, x.size(-1)), (BLOCK, bias is not None)
    launch(_forward_kernel, (programs, 1), tensors, numbers, constants, 4)
    return out, part


def backward(
    dout: Tensor, dsums: Tensor | None, logit: Tensor, x: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of logit and x, from those of the features and partial sums."""
    dout, logit, x = dout.contiguous(), logit.contiguous(), x.contiguous()
    dsums = None if dsums is None else dsums.contiguous()
    dlogit, dx = torch.empty_like(logit), torch.empty_like(x)
    grid = (divide_up(x.numel(), BLOCK), 1)
    constants = (BLOCK, dsums is not None)
    tensors = (dout, dsums, logit, x, dlogit, dx)
    launch(_backward_kernel, grid, tensors, (x.numel(),), constants, 4)
    return dlogit, dx


def backward_of_rows(
    dout: Tensor,
    dsums: Tensor | None,
    logit: Tensor,
    x: Tensor,
    lse: Tensor,
    score: Tensor | None,
    *,
    split_lse: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`backward` and `sums.statistics` in one pass, with sums over all rows.

    Args:
        dout: The gradient of the features, [rows, H * C].
        dsums: That of the partial sums, if any.
        logit: The gate before its sigmoid, [rows, H * C].
        x: Attention's output, [rows, H, C].
        lse: Its log-sum-exp.
        score: The score of each target that `sums.statistics` keeps, or None.
        split_lse: Whether the table has the two numbers of ``lse``, or their sum.

    Returns:
        The gradients of logit and x, the table of `sums.statistics`, and partial sums
        over rows of dout for the gradient of a bias, [programs, H, C].
    """
    dout, logit = dout.contiguous(), logit.contiguous()
    rows, heads, channels = x.shape
    dsums = None if dsums is None else dsums.contiguous()
    dlogit, dx = torch.empty_like(logit), torch.empty_like(x)
    columns = 2 + split_lse + (score is not None)
    table = lse.new_empty(rows, columns, heads)
    block, tiles, constants = rows_tile(x)
    programs = min(divide_up(rows, block), _PROGRAMS)
    part = lse.new_empty(programs, heads, channels)
    launch(
        _backward_rows_kernel,
        (programs, tiles),
        (dout, dsums, logit, x, lse, score, dlogit, dx, table, part),
        (rows, heads),
        (*constants, score is not None, split_lse, dsums is not None, BLOCK),
        warps=4,
    )
    return dlogit, dx, table, part


def attend(kernels: Any, call: Forward) -> tuple[Tensor | None, ...]:
    """As `Backend.attend`; the sum of the gate in parts, [parts, 1]."""
    attended, lse, weights, *state = kernels.forward(call)
    logit, skip, bias, wants_sum = call.epilogue
    if not changes_output(call.epilogue):
        return attended, None, lse, weights, None, *state
    row = None if bias is None else bias.flatten()
    part = None
    if logit is not None:
        flat, part = forward(logit.flatten(1), attended.flatten(1), row)
        out = flat.view_as(attended)
        out = out if skip is None else out.add_(skip)
    elif skip is not None:
        out = attended + skip
        out = out if bias is None else out.add_(bias)
    else:
        out = attended + bias
    gate_sum = part.unsqueeze(1) if part is not None and wants_sum else None
    return out, attended, lse, weights, gate_sum, *state


def gradients(kernels: Any, call: Backward) -> tuple[Tensor | None, ...]:
    """As `Backend.gradients`."""
    saved, dout = call.saved, call.dout
    attended, logit = saved.attended, saved.gate_logit
    dsums = None if call.dgate_sum is None else call.dgate_sum.flatten()
    dlogit, dbias, table = None, None, {}
    if logit is not None:
        given = (dout.flatten(1), dsums, logit.flatten(1))
        if call.dweights is None:
            more = kernels.statistics_options(saved)
            dlogit, dattended, statistics, part = backward_of_rows(
                *given, attended, saved.lse, **more
            )
            table = {"table": statistics}
            dbias = part.sum(0).to(dout.dtype) if call.wants_bias else None
        else:
            dlogit, dattended = backward(*given, attended.flatten(1))
        call = call._replace(dout=dattended.view_as(attended))
        dlogit = dlogit.view_as(attended)
    if call.wants_bias and dbias is None:
        dbias = dout.sum(0)
    return *kernels.backward(call, **table), dlogit, dbias
