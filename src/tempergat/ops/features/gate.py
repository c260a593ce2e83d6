"""A feature gate: the product with a sigmoid, and the gate's sum for its penalty.

In plain PyTorch that is fifteen passes over the features, forward and backward. On a
CUDA device eager code makes eight, by one kernel each way; a compiler fuses the plain
formula by itself.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tempergat.ops.backend import Backend, find
from tempergat.ops.calls import Call
from tempergat.ops.second_derivative import gradients_of
from tempergat.ops.torch_internals import in_transform, is_tracing


def sigmoid_gate(logit: Tensor, x: Tensor) -> tuple[Tensor, Tensor | None]:
    """``x * sigmoid(logit)``, and the sum of the sigmoid in at least float32.

    Args:
        logit: The gate before its sigmoid.
        x: The features, of the same shape.

    Returns:
        The features, and a tensor whose elements add up to the sum: a single number, or
        partial sums, which only the few who need the sum have to add up. Where
        gradients are off there may be none.
    """
    backend = find_backend(logit, x)
    if backend is not None:
        result: tuple[Tensor, Tensor]
        kernels = backend.kernels("gate")
        result = _SigmoidGate.apply(logit, x, kernels)  # type: ignore[no-untyped-call]
        return result
    gate = torch.sigmoid(logit)
    out = x * gate
    if not torch.is_grad_enabled():
        return out, None
    dtype = torch.promote_types(gate.dtype, torch.float32)
    return out, gate.sum(dtype=dtype)


def close_rows(logit: Tensor, in_use: Tensor) -> None:
    """Closes the gate of all rows after the first ``in_use``, in place.

    At minus infinity the gate and its derivative are 0, so autograd need not know.

    Args:
        logit: The gate before its sigmoid; nothing was computed from it yet.
        in_use: A number, 0-d.
    """
    values = logit.detach()
    backend = find_backend(logit, logit)
    if backend is not None and values.is_contiguous():
        backend.kernels("gate").close(values, in_use)
        return
    rows = torch.arange(logit.size(0), device=logit.device)
    padding = (rows >= in_use).view(-1, *[1] * (logit.dim() - 1))
    values.masked_fill_(padding, -torch.inf)


def find_backend(logit: Tensor, x: Tensor) -> Backend | None:
    """The backend whose kernels serve this gate; None for the plain formula."""
    # There are none for the CPU. They are not registered with torch, so compilers,
    # transforms and subclasses of tensors (such as tensors without data) need the plain
    # formula.
    if x.is_cpu or type(x) is not Tensor or type(logit) is not Tensor:
        return None
    if is_tracing() or in_transform():
        return None
    return find(Call("gate", ("gpu",), (x, logit)))


def _gated(logit: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    gate = torch.sigmoid(logit)
    return x * gate, gate


class _SigmoidGate(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, logit: Tensor, x: Tensor, kernels: Any
    ) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(logit, x)
        ctx.set_materialize_grads(False)
        ctx.kernels = kernels
        result: tuple[Tensor, Tensor] = kernels.forward(logit, x)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        dout, dsums = gradients
        logit, x = ctx.saved_tensors
        if dout is None:
            dout = torch.zeros_like(x)
        if torch.is_grad_enabled():
            # A second derivative will be taken.
            if dsums is not None:
                dsums = dsums.repeat_interleave(ctx.kernels.BLOCK)[: x.numel()]
                dsums = dsums.view_as(x).to(x.dtype)
            upstream, wanted = (dout, dsums), ctx.needs_input_grad[:2]
            return *gradients_of(_gated, upstream, (logit, x), wanted), None
        return (*ctx.kernels.backward(dout, dsums, logit, x), None)
