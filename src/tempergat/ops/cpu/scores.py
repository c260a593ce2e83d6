"""GAT's scores of all nodes over the temperature, by the C++ functions."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import torch
from torch import Tensor

from tempergat.ops.cpu import library

_NAMES = {torch.float32: "float", torch.float64: "double"}


@functools.cache
def _function(kind: str, dtype: torch.dtype) -> Any:
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    shared = (*[number] * 3, *[pointer] * 4, number, ctypes.c_double)
    results = [pointer] * (2 if kind == "scores" else 6)
    return library.library.function(f"{kind}_{_NAMES[dtype]}", *shared, *results)


def serves(dtype: torch.dtype) -> bool:
    """Whether the functions below take tensors of a type."""
    return dtype in _NAMES and library.library.problem is None


def forward(
    z: Tensor, att_src: Tensor, att_dst: Tensor, theta: Tensor | None, epsilon: float
) -> tuple[Tensor, Tensor]:
    """The scores of both vectors, [nodes, heads]; the tensors are contiguous."""
    scores = z.new_empty(z.shape[:2]), z.new_empty(z.shape[:2])
    run = _function("scores", z.dtype)
    given = _arguments(z, att_src, att_dst, theta, epsilon)
    library.check("scores", run(*given, *[x.data_ptr() for x in scores]))
    return scores


def backward(
    dscores: tuple[Tensor, ...],
    z: Tensor,
    att_src: Tensor,
    att_dst: Tensor,
    theta: Tensor | None,
    epsilon: float,
) -> tuple[Tensor | None, ...]:
    """The gradients of z, both vectors and theta."""
    dz, datt_src = z.new_empty(z.shape), att_src.new_empty(att_src.shape)
    datt_dst = att_dst.new_empty(att_dst.shape)
    dtheta = None if theta is None else theta.new_empty(theta.shape)
    run = _function("scores_backward", z.dtype)
    given = _arguments(z, att_src, att_dst, theta, epsilon)
    dense = [x.contiguous() for x in dscores]
    results = (*dense, dz, datt_src, datt_dst)
    address = None if dtheta is None else dtheta.data_ptr()
    status = run(*given, *[x.data_ptr() for x in results], address)
    library.check("scores_backward", status)
    return dz, datt_src, datt_dst, dtheta


def _arguments(
    z: Tensor, att_src: Tensor, att_dst: Tensor, theta: Tensor | None, epsilon: float
) -> tuple[Any, ...]:
    return (
        *z.shape,
        z.data_ptr(),
        att_src.data_ptr(),
        att_dst.data_ptr(),
        None if theta is None else theta.data_ptr(),
        0 if theta is None else theta.numel(),
        epsilon,
    )
