"""Each node's part of GAT's logits, by one kernel each way where there is one."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter

from tempergat.ops.backend import find
from tempergat.ops.calls import Call
from tempergat.ops.torch_internals import in_dispatch_mode, in_transform, is_tracing


def node_scores(z: Tensor, att: Tensor) -> tuple[Tensor, ...] | None:
    """``(z * att[a]).sum(-1)`` for one or two attention vectors of each head.

    Args:
        z: The projected features, [num_nodes, heads, channels].
        att: The attention vectors, float32, [1 or 2, heads, channels].

    Returns:
        One tensor [num_nodes, heads] for each vector; None if no kernel serves it.
    """
    # The kernels are not registered with torch, so compilers, transforms and subclasses
    # of tensors need torch's own ops.
    if type(z) is not Tensor or type(att) not in (Tensor, Parameter):
        return None
    if is_tracing() or in_transform() or in_dispatch_mode() or z.numel() == 0:
        return None
    backend = find(Call("scores", ("gpu",), (z, att)))
    if backend is None or att.dtype != torch.float32:
        return None
    scores: tuple[Tensor, ...] = _NodeScores.apply(  # type: ignore[no-untyped-call]
        z, att, backend.kernels("scores")
    )
    return scores


class _NodeScores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, att: Tensor, kernels: Any) -> tuple[Tensor, ...]:
        ctx.save_for_backward(z, att)
        ctx.kernels = kernels
        return tuple(kernels.forward(z, att))

    @staticmethod
    def backward(ctx: Any, *dscores: Tensor) -> tuple[Tensor, Tensor, None]:
        z, att = ctx.saved_tensors
        if torch.is_grad_enabled():
            # A second derivative will be taken.
            wide = [dscore.unsqueeze(-1) for dscore in dscores]
            dz = sum(d * a for d, a in zip(wide, att, strict=True))
            datt = torch.stack([(d * z).sum(0) for d in wide])
            assert isinstance(dz, Tensor)
            return dz.to(z.dtype), datt, None
        return (*ctx.kernels.backward(z, att, dscores), None)
