# mypy: allow-untyped-calls, allow-untyped-decorators
# mypy: disable-error-code="no-untyped-def, assignment"
"""The feature gate in Triton: one pass forward, one backward."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from tempergat.ops.gpu.launch import divide_up, launch

BLOCK = 2048


@triton.jit(do_not_specialize=["count"])
def _forward_kernel(
    logit_ptr, x_ptr, out_ptr, part_ptr, count, BLOCK: tl.constexpr
):  # fmt: skip
    program = tl.program_id(0).to(tl.int64)
    offset = program * BLOCK + tl.arange(0, BLOCK)
    inside = offset < count
    # Past the end the gate is sigmoid(-inf) = 0.
    logit = tl.load(logit_ptr + offset, mask=inside, other=-float("inf"))
    x = tl.load(x_ptr + offset, mask=inside, other=0.0)
    gate = tl.sigmoid(logit.to(tl.float32))
    out = (x.to(tl.float32) * gate).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + offset, out, mask=inside)
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
    """Sets the logits of all rows behind the first ``in_use`` to minus infinity."""
    count, block = logit.numel(), 8 * BLOCK
    numbers = (count // max(logit.size(0), 1), count)
    grid = (divide_up(count, block), 1)
    launch(_close_kernel, grid, (logit, in_use), numbers, (block,), 4)


def forward(logit: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """The gated features and partial sums of the gate, float32, one per BLOCK."""
    logit, x = logit.contiguous(), x.contiguous()
    out = torch.empty_like(x)
    programs = divide_up(x.numel(), BLOCK)
    part = x.new_empty(programs, dtype=torch.float32)
    tensors = (logit, x, out, part)
    launch(_forward_kernel, (programs, 1), tensors, (x.numel(),), (BLOCK,), 4)
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
