"""Dropout of whole tensors, for one seed or for many at once.

The same elements are dropped as by `random.dropout`, in one pass and without a mask in
memory: backward draws the bits again. A `vmap` over seeds gives [rows, seeds, columns],
the layout in which many models' features lie.
"""

from typing import Any

import torch
from torch import Tensor

from tempergat.ops import random
from tempergat.ops.backend import find
from tempergat.ops.calls import Call
from tempergat.ops.registration import ELSEWHERE, call, fold, needs_plain, register


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


def _run(x_RXC: Tensor, seeds_B: Tensor, rate: float) -> Tensor:
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
    {ELSEWHERE: _run},
    shapes=_shape,
    save=_save,
    gradient=_gradient,
    fold=_fold,
)
