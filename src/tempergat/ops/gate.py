"""A feature gate: the product with a sigmoid, and the gate's sum for its penalty.

In plain PyTorch that is fifteen passes over the features, forward and backward. On a
CUDA device eager code makes eight, by one kernel each way; a compiler fuses the plain
formula by itself.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tempergat.ops.gpu import has_triton
from tempergat.ops.torch_internals import in_forward_mode, in_transform, is_tracing

_DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def sigmoid_gate(
    logit: Tensor, x: Tensor, with_total: bool
) -> tuple[Tensor, Tensor | None]:
    """``x * sigmoid(logit)``, and the sum of the sigmoid in at least float32.

    Args:
        logit: What the gate is the sigmoid of.
        x: What is gated, of the same shape.
        with_total: Whether the sum is wanted.
    """
    if fused(logit, x):
        result: tuple[Tensor, Tensor] = _SigmoidGate.apply(  # type: ignore[no-untyped-call]
            logit, x
        )
        return result
    gate = torch.sigmoid(logit)
    if not with_total:
        return x * gate, None
    dtype = torch.promote_types(gate.dtype, torch.float32)
    return x * gate, gate.sum(dtype=dtype)


def fused(logit: Tensor, x: Tensor) -> bool:
    """Whether the kernels serve this gate."""
    return (
        x.is_cuda
        # Subclasses, such as tensors without data, see the plain formula.
        and type(x) is Tensor
        and type(logit) is Tensor
        and x.dtype == logit.dtype
        and x.dtype in _DTYPES
        and x.shape == logit.shape
        and x.device == logit.device
        and not is_tracing()
        and not in_transform()
        and not in_forward_mode()
        and has_triton()
    )


class _SigmoidGate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logit: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        from tempergat.ops.gpu import gate as gpu_gate

        ctx.save_for_backward(logit, x)
        ctx.set_materialize_grads(False)
        return gpu_gate.forward(logit, x)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, Tensor]:
        dout, dtotal = gradients
        logit, x = ctx.saved_tensors
        if dout is None:
            dout = torch.zeros_like(x)
        if torch.is_grad_enabled():
            # Someone will differentiate this once more.
            gate = torch.sigmoid(logit)
            dgate = dout * x if dtotal is None else dout * x + dtotal
            return dgate.to(x.dtype) * gate * (1 - gate), dout * gate
        from tempergat.ops.gpu import gate as gpu_gate

        return gpu_gate.backward(dout, dtotal, logit, x)
