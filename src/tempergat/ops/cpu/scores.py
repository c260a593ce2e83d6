"""GAT's scores of nodes over the temperature, by the C++ functions."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import torch
from torch import Tensor

from tempergat.ops.cpu import library
from tempergat.ops.reference import EPSILON

_NAMES = {torch.float32: "float", torch.float64: "double"}


@functools.cache
def _function(kind: str, dtype: torch.dtype) -> Any:
    pointer, number, real = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double
    given = (*[number] * 3, pointer, number, *[pointer] * 3, number, real, number)
    results: list[Any] = [pointer] * 2
    if kind == "scores_backward":
        results += [number, *[pointer] * 4]
    return library.library.function(f"{kind}_{_NAMES[dtype]}", *given, *results)


def forward(
    z: Tensor,
    vectors: tuple[Tensor, ...],
    theta: Tensor | None,
    scores: tuple[Tensor, ...],
) -> None:
    """Writes ``<z, a> / T`` for each of one or two vectors a.

    Args:
        z: The features, [nodes, H, C].
        vectors: The attention vectors, contiguous, [H, C] each.
        theta: Gives T; contiguous, 0-d or [H]; None for 1.
        scores: Where the scores go, [nodes, H] each.
    """
    z, given = _arguments(z, vectors, theta)
    status = _function("scores", z.dtype)(*given, *_addresses(scores))
    library.check("scores", status)


def backward(
    z: Tensor,
    vectors: tuple[Tensor, ...],
    theta: Tensor | None,
    dscores: tuple[Tensor, ...],
    dz: Tensor,
) -> tuple[list[Tensor], Tensor | None]:
    """Adds to the gradient of z and returns those of the vectors and of theta.

    Args:
        z: As in `forward`, like the next two.
        vectors: The attention vectors.
        theta: Gives T.
        dscores: The gradients of the scores. The second may have fewer rows than z.
        dz: The gradient of z so far, contiguous.
    """
    z, given = _arguments(z, vectors, theta)
    total = dz if dz.dtype == z.dtype else dz.to(z.dtype)
    datt = [torch.empty_like(vector) for vector in vectors]
    dtheta = None if theta is None else torch.empty_like(theta)
    incoming = tuple(d.contiguous() for d in dscores)
    status = _function("scores_backward", z.dtype)(
        *given,
        *_addresses(incoming),
        incoming[-1].size(0),
        total.data_ptr(),
        *_addresses(datt),
        None if dtheta is None else dtheta.data_ptr(),
    )
    library.check("scores_backward", status)
    if total is not dz:
        dz.copy_(total)
    return datt, dtheta


def _addresses(tensors: Any) -> tuple[int | None, int | None]:
    return tensors[0].data_ptr(), tensors[1].data_ptr() if len(tensors) > 1 else None


def _arguments(
    z: Tensor, vectors: tuple[Tensor, ...], theta: Tensor | None
) -> tuple[Tensor, tuple[Any, ...]]:
    """The features as the functions take them, and all arguments of a call."""
    if z.dtype != vectors[0].dtype:
        z = z.to(vectors[0].dtype)
    # Rows may be apart, as in a slice of a wider product.
    if z.stride()[1:] != (z.size(2), 1):
        z = z.contiguous()
    return z, (
        *z.shape,
        z.data_ptr(),
        z.stride(0),
        *_addresses(vectors),
        None if theta is None else theta.data_ptr(),
        0 if theta is None else theta.numel(),
        EPSILON,
        library.library.threads(),
    )
