"""Dense features times weights, for many models at once.

A `vmap` over models of torch's own product leaves [models, nodes, channels]; here it is
[nodes, models, channels], the layout attention wants, and features that all models
share are multiplied by all weights in one product.

Shape suffixes: N nodes, F features, B models, O output channels, X sets of features (1
or B).
"""

from typing import Any

import torch
from torch import Tensor

from tempergat.ops.registration import call, fold, register


def linear(x_NF: Tensor, weight_OF: Tensor) -> Tensor:
    """`torch.nn.functional.linear`, [N, O]."""
    out_NBO: Tensor = call("dense_linear", x_NF.unsqueeze(1), weight_OF.unsqueeze(0))
    return out_NBO.squeeze(1)


def _linear(x_NXF: Tensor, weight_BOF: Tensor) -> Tensor:
    models, channels, _ = weight_BOF.shape
    if x_NXF.size(1) == 1:
        out_NC = x_NXF.squeeze(1) @ weight_BOF.flatten(0, 1).t()
        return out_NC.view(-1, models, channels)
    out_NBO = _linear_shape(x_NXF, weight_BOF)
    torch.bmm(x_NXF.transpose(0, 1), weight_BOF.mT, out=out_NBO.transpose(0, 1))
    return out_NBO


def _outer(dout_NBO: Tensor, x_NXF: Tensor) -> Tensor:
    """The weights' gradient, [B, O, F]."""
    _, models, channels = dout_NBO.shape
    if x_NXF.size(1) == 1:
        dweight_CF = dout_NBO.flatten(1).t() @ x_NXF.squeeze(1)
        return dweight_CF.view(models, channels, -1)
    return torch.bmm(dout_NBO.permute(1, 2, 0), x_NXF.transpose(0, 1))


def _linear_shape(x: Tensor, weight: Tensor) -> Tensor:
    return x.new_empty(x.size(0), weight.size(0), weight.size(1))


def _outer_shape(dout: Tensor, x: Tensor) -> Tensor:
    return x.new_empty(*dout.shape[1:], x.size(2))


def _save(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs)
    ctx.wanted = [x.requires_grad for x in inputs]


def _linear_gradient(ctx: Any, dout_NBO: Tensor) -> tuple[Tensor | None, ...]:
    x_NXF, weight_BOF = ctx.saved_tensors
    dx = dweight = None
    if ctx.wanted[0]:
        dx = _summed(call("dense_linear", dout_NBO, weight_BOF.mT), x_NXF)
    if ctx.wanted[1]:
        dweight = call("dense_outer", dout_NBO, x_NXF)
    return dx, dweight


def _outer_gradient(ctx: Any, d_BOF: Tensor) -> tuple[Tensor | None, ...]:
    dout_NBO, x_NXF = ctx.saved_tensors
    ddout = dx = None
    if ctx.wanted[0]:
        ddout = call("dense_linear", x_NXF, d_BOF)
    if ctx.wanted[1]:
        dx = _summed(call("dense_linear", dout_NBO, d_BOF.mT), x_NXF)
    return ddout, dx


def _summed(gradient_NBF: Tensor, x_NXF: Tensor) -> Tensor:
    """The gradient of features that all models may share."""
    if x_NXF.size(1) == gradient_NBF.size(1):
        return gradient_NBF
    return gradient_NBF.sum(1, keepdim=True)


def _fold_features(x: Tensor, dim: int | None, models: int, size: int) -> Tensor:
    """Features for ``size`` times ``models`` models."""
    if dim is not None:
        return x.movedim(dim, 1).expand(-1, -1, models, -1).flatten(1, 2)
    return x if x.size(1) == 1 else fold(x, None, 1, size)


def _fold_linear(info: Any, in_dims: Any, x: Tensor, weight: Tensor) -> Any:
    size = info.batch_size
    weight = fold(weight, in_dims[1], 0, size)
    x = _fold_features(x, in_dims[0], weight.size(0) // size, size)
    return call("dense_linear", x, weight).unflatten(1, (size, -1)), 1


def _fold_outer(info: Any, in_dims: Any, dout: Tensor, x: Tensor) -> Any:
    size = info.batch_size
    dout = fold(dout, in_dims[0], 1, size)
    x = _fold_features(x, in_dims[1], dout.size(1) // size, size)
    return call("dense_outer", dout, x).unflatten(0, (size, -1)), 0


register(
    "dense_linear(Tensor x, Tensor weight) -> Tensor",
    {"CPU": _linear, "CUDA": _linear},
    shapes=_linear_shape,
    save=_save,
    gradient=_linear_gradient,
    fold=_fold_linear,
)
register(
    "dense_outer(Tensor dout, Tensor x) -> Tensor",
    {"CPU": _outer, "CUDA": _outer},
    shapes=_outer_shape,
    save=_save,
    gradient=_outer_gradient,
    fold=_fold_outer,
)
