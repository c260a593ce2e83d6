"""The feature gate on a layer's output, without autograd."""

from __future__ import annotations

import torch
from torch import Tensor

from tempergat.ops.one_node.records import LayerOptions


def open_gate(
    options: LayerOptions, logit: Tensor, x: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Multiplies features by the sigmoid of a logit.

    Returns:
        The features; a tensor whose elements add up to the sum of the gate; what
        `close` needs.
    """
    if options.on_gpu:
        out, sums = options.kernels("gate").forward(logit, x)
        return out, sums, logit
    gate = torch.sigmoid(logit)
    return x * gate, gate, gate


def close(
    options: LayerOptions, dout: Tensor, dtotal: Tensor | None, kept: Tensor, x: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of the logit and of the features.

    Args:
        options: The layer's.
        dout: The gradient of the features' product with the gate.
        dtotal: The gradient of the second result of `open_gate`.
        kept: Its third result.
        x: The features.
    """
    if options.on_gpu:
        dlogit, dx = options.kernels("gate").backward(dout, dtotal, kept, x)
        return dlogit, dx
    dgate = dout * x
    if dtotal is not None:
        dgate += dtotal
    return torch.ops.aten.sigmoid_backward(dgate, kept), dout * kept
