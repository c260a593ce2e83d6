"""GAT's scores of small graphs over the temperature, by one function each way."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Parameter

from tempergat.ops.cpu import scores as kernels
from tempergat.ops.torch_internals import (
    SingleLevelFunction,
    in_dispatch_mode,
    in_forward_mode,
    in_transform,
    is_tracing,
)

_PLAIN_TYPES = frozenset((Tensor, Parameter, type(None)))


def tempered_scores(
    z: Tensor, att_src: Tensor, att_dst: Tensor, theta: Tensor | None, epsilon: float
) -> tuple[Tensor, Tensor] | None:
    """``<z, att / T>`` of two vectors, with ``T = softplus(theta) + epsilon``.

    Meant for small graphs on the CPU, where it replaces nine of torch's ops, and more
    in backward, by one function.

    Args:
        z: The projected features, [num_nodes, heads, channels].
        att_src: The first attention vector, [1, heads, channels].
        att_dst: The second one.
        theta: Gives T: a number, or one per head; None for T = 1.
        epsilon: What T is at least.

    Returns:
        Two tensors [num_nodes, heads]; None if there is no function for these tensors.
    """
    tensors = (z, att_src, att_dst, theta)
    # The functions are not registered with torch: everything else needs torch's ops.
    if not _PLAIN_TYPES.issuperset(map(type, tensors)) or is_tracing():
        return None
    if in_transform() or in_dispatch_mode() or in_forward_mode():
        return None
    dtype = z.dtype
    for x in tensors:
        if x is not None and (x.dtype != dtype or not x.is_cpu):
            return None
    if z.numel() == 0 or not (z.is_contiguous() and kernels.serves(dtype)):
        return None
    found: tuple[Tensor, Tensor] = _Scores.apply(*tensors, epsilon)
    return found


class _Scores(SingleLevelFunction):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> tuple[Tensor, Tensor]:
        z, att_src, att_dst, theta, epsilon = arguments
        ctx.save_for_backward(z, att_src, att_dst, theta)
        ctx.epsilon = epsilon
        return kernels.forward(
            z, att_src.contiguous(), att_dst.contiguous(), theta, epsilon
        )

    @staticmethod
    def backward(ctx: Any, *dscores: Tensor) -> tuple[Tensor | None, ...]:
        z, att_src, att_dst, theta = ctx.saved_tensors
        epsilon = ctx.epsilon
        if not torch.is_grad_enabled():
            vectors = att_src.contiguous(), att_dst.contiguous()
            return (*kernels.backward(dscores, z, *vectors, theta, epsilon), None)
        # A second derivative will be taken: the formula in torch's ops.
        temperature = None
        if theta is not None:
            temperature = (F.softplus(theta) + epsilon).view(-1, 1)
        dz = torch.zeros_like(z)
        datt, dtemperature = [], torch.zeros_like(z[0, :, :1])
        for dscore, att in zip(dscores, (att_src, att_dst), strict=True):
            divided = att if temperature is None else att / temperature
            dz = dz + dscore.unsqueeze(-1) * divided
            product = (dscore.unsqueeze(-1) * z).sum(0, keepdim=True)
            datt.append(product if temperature is None else product / temperature)
            if temperature is not None:
                share = (product * divided / temperature).sum((0, 2), keepdim=False)
                dtemperature = dtemperature - share.view(-1, 1)
        if theta is None:
            return dz, *datt, None, None
        total = dtemperature.view(-1)
        if theta.numel() == 1:
            total = total.sum()
        return dz, *datt, total.view(theta.shape) * torch.sigmoid(theta), None
