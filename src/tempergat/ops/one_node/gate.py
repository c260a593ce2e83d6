"""The feature gate on a layer's output, without autograd."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from tempergat.ops.one_node.records import Attended, LayerOptions, LayerTensors


class Opened(NamedTuple):
    """Features times their gate.

    Attributes:
        out: The features, with the layer's bias added.
        total: A tensor whose elements add up to the sum of the gate.
        kept: What `backward` needs: the gate on a CPU, its logit on a GPU.
    """

    out: Tensor
    total: Tensor
    kept: Tensor


class GateGradients(NamedTuple):
    """The gradients of a gate, and what kernels found on the way.

    Attributes:
        logit: Of the logit, [N, H * C].
        out: Of attention's output, [N, H, C].
        statistics: What attention's backward pass needs of each node, on a GPU.
        columns: Partial sums over the nodes of the gradients of the layer's output and
            of the logit, on a GPU.
    """

    logit: Tensor
    out: Tensor
    statistics: Tensor | None = None
    columns: Tensor | None = None


def forward(
    given: LayerTensors, options: LayerOptions, logit: Tensor, out: Tensor
) -> Opened:
    """Multiplies attention's output, [N, H * C], by the sigmoid of a logit."""
    if options.on_gpu:
        result, sums = options.kernels("gate").forward(logit, out, given.bias)
        return Opened(result, sums, logit)
    gate = torch.sigmoid(logit)
    result = out * gate
    return Opened(result if given.bias is None else result.add_(given.bias), gate, gate)


def backward(
    options: LayerOptions,
    attended: Attended,
    kept: Tensor,
    dout: Tensor,
    dtotal: Tensor | None,
) -> GateGradients:
    """The gradients from those of the layer's output and of the gate's sum."""
    out = attended.out
    if options.on_gpu:
        is_gat = options.attention == "gat"
        score = attended.second if is_gat else None
        found = options.kernels("gate").backward_of_rows(
            dout, dtotal, kept, out, attended.lse, score, apart=is_gat
        )
        return GateGradients(*found)
    dgate = dout * out.view(dout.shape)
    if dtotal is not None:
        dgate += dtotal
    dlogit = torch.ops.aten.sigmoid_backward(dgate, kept)
    return GateGradients(dlogit, (dout * kept).view(out.shape))
