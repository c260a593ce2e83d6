"""Dropout and the gate, which treat each feature by itself.

Dropout, for one seed or for many at once, drops the same elements as `random.dropout`,
in one pass and without a mask in memory: backward draws the bits again. A `vmap` over
seeds gives [rows, seeds, columns], the layout in which many models' features lie.

The gate is the product with a sigmoid, and the gate's sum for its penalty. In plain
PyTorch that is fifteen passes over the features, forward and backward. On a CUDA device
eager code makes eight, by one kernel each way; a compiler fuses the plain formula by
itself.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tempergat.ops import random
from tempergat.ops.backend import Backend, find
from tempergat.ops.calls import Call
from tempergat.ops.registration import ELSEWHERE, call, fold, needs_plain, register
from tempergat.ops.second_derivative import gradients_of
from tempergat.ops.torch_internals import in_transform, is_tracing


def dropout(x: Tensor, rate: float, seed: Tensor) -> Tensor:
    """`random.dropout`: the same elements are dropped."""
    if rate == 0.0 or x.numel() == 0:
        return x
    if needs_plain():
        return random.dropout(x, rate, seed)
    rows = x.size(0) if x.dim() else 1
    if x.dim() == 1 and x.is_cuda:
        # The values of sparse features: there a model's values are read together.
        rows = 1
    matrix = x.reshape(rows, 1, -1)
    dropped: Tensor = call("dropout", matrix, seed.view(1).to(x.device), rate)
    return dropped.reshape(x.shape)


def _drop(x_RXC: Tensor, seeds_B: Tensor, rate: float) -> Tensor:
    backend = find(Call("dropout", ("cpu", "gpu"), (x_RXC, seeds_B)))
    if backend is None:
        return _drop_in_plain_pytorch(x_RXC, seeds_B, rate)
    dropped: Tensor = backend.kernels("dropout").run(x_RXC, seeds_B, rate)
    return dropped


def _drop_in_plain_pytorch(x_RXC: Tensor, seeds_B: Tensor, rate: float) -> Tensor:
    rows, _, columns = x_RXC.shape
    index = torch.arange(rows * columns, device=x_RXC.device).view(rows, 1, columns)
    seeds = seeds_B.view(1, -1, 1)
    return x_RXC * random.keep_factor(seeds, index, rate, x_RXC.dtype)


def _shape(x_RXC: Tensor, seeds_B: Tensor, rate: float) -> Tensor:
    return x_RXC.new_empty(x_RXC.size(0), seeds_B.size(0), x_RXC.size(2))


def _save(ctx: Any, inputs: Any, output: Any) -> None:
    x, seeds, ctx.rate = inputs
    ctx.is_shared = x.size(1) < seeds.size(0)
    ctx.save_for_backward(seeds)


def _gradient(ctx: Any, dout: Tensor) -> tuple[Tensor, None, None]:
    dx = call("dropout", dout, *ctx.saved_tensors, ctx.rate)
    return dx.sum(1, keepdim=True) if ctx.is_shared else dx, None, None


def _fold(info: Any, in_dims: Any, x: Tensor, seeds: Tensor, rate: float) -> Any:
    size = info.batch_size
    seeds = fold(seeds, in_dims[1], 0, size)
    if in_dims[0] is not None:
        # A call of the batch has one set of elements per seed, or one for all.
        x = x.movedim(in_dims[0], 1).expand(-1, -1, seeds.size(0) // size, -1)
        x = x.flatten(1, 2)
    elif x.size(1) > 1:
        x = fold(x, None, 1, size)
    return call("dropout", x, seeds, rate).unflatten(1, (size, -1)), 1


register(
    "dropout(Tensor x, Tensor seeds, float rate) -> Tensor",
    {ELSEWHERE: _drop},
    shapes=_shape,
    save=_save,
    gradient=_gradient,
    fold=_fold,
)


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
