"""Dropout masks of whole tensors, for one seed or for many at once.

The same bits as `ops/random.py`, without its intermediate tensors. A `vmap` over seeds
gives [rows, seeds, columns], the layout in which many models' features lie.
"""

from typing import Any

import torch
from torch import Tensor

from tempergat.ops import cpu
from tempergat.ops.random import keep_mask
from tempergat.ops.registration import call, fold, register, save_nothing


def keep_matrix(seed: Tensor, rows: int, columns: int, rate: float) -> Tensor:
    """1 where an element of a matrix is kept, else 0; float32, [rows, columns].

    Args:
        seed: A 0-d int64 seed.
        rows: The matrix' rows.
        columns: The matrix' columns; element (r, c) has the number r * columns + c.
        rate: The probability of 0.
    """
    kept: Tensor = call("keep_matrix", seed.view(1), rows, columns, rate)
    return kept.squeeze(1)


def dropout(x: Tensor, rate: float, seed: Tensor) -> Tensor:
    """`random.dropout`: the same elements are dropped."""
    if rate == 0.0:
        return x
    rows = x.size(0) if x.dim() > 1 else 1
    columns = x[0].numel() if x.dim() > 1 and rows else x.numel()
    kept = keep_matrix(seed, rows, columns, rate).view(x.shape)
    return x * (kept.to(x.dtype) / (1.0 - rate))


def _on_cpu(seeds: Tensor, rows: int, columns: int, rate: float) -> Tensor:
    if cpu.library.problem is not None:
        return _plainly(seeds, rows, columns, rate)
    out = torch.empty(rows, seeds.numel(), columns)
    cpu.library.keep_matrix(seeds.contiguous(), rate, out)
    return out


def _plainly(seeds: Tensor, rows: int, columns: int, rate: float) -> Tensor:
    index = torch.arange(rows * columns, device=seeds.device).view(rows, 1, columns)
    return keep_mask(seeds.view(1, -1, 1), index, rate).to(torch.float32)


def _shape(seeds: Tensor, rows: int, columns: int, rate: float) -> Tensor:
    return seeds.new_empty(rows, seeds.size(0), columns, dtype=torch.float32)


def _no_gradient(ctx: Any, gradient: Tensor) -> tuple[None, ...]:
    return (None,) * 4


def _fold(info: Any, in_dims: Any, seeds: Tensor, *rest: Any) -> Any:
    kept = call("keep_matrix", fold(seeds, in_dims[0], 0, info.batch_size), *rest)
    return kept.unflatten(1, (info.batch_size, -1)), 1


register(
    "keep_matrix(Tensor seeds, SymInt rows, SymInt columns, float rate) -> Tensor",
    {"CPU": _on_cpu, "CUDA": _plainly},
    shapes=_shape,
    save=save_nothing,
    gradient=_no_gradient,
    fold=_fold,
)
