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

from tempergat.ops.backend import find
from tempergat.ops.calls import Call
from tempergat.ops.registration import ELSEWHERE, call, fold, needs_plain, register


def linear(x_NF: Tensor, weight_OF: Tensor) -> Tensor:
    """`torch.nn.functional.linear`, [N, O]."""
    if needs_plain():
        return torch.nn.functional.linear(x_NF, weight_OF)
    x_NF, weight_OF = _as_autocast(x_NF), _as_autocast(weight_OF)
    out_NBO: Tensor = call("dense_linear", x_NF.unsqueeze(1), weight_OF.unsqueeze(0))
    return out_NBO.squeeze(1)


def _as_autocast(x: Tensor) -> Tensor:
    """An argument of a product in the type that autocast gives it."""
    device = x.device.type
    if not torch.is_autocast_enabled(device) or x.dtype == torch.float64:
        return x
    return x.to(torch.get_autocast_dtype(device))


def _linear(x_NXF: Tensor, weight_BOF: Tensor) -> Tensor:
    out_NBO = _linear_shape(x_NXF, weight_BOF)
    # With out=, which autocast does not change: the types are chosen above.
    if x_NXF.size(1) == 1:
        weight_CF = weight_BOF.flatten(0, 1)
        torch.mm(x_NXF.squeeze(1), weight_CF.t(), out=out_NBO.flatten(1))
    else:
        torch.bmm(x_NXF.transpose(0, 1), weight_BOF.mT, out=out_NBO.transpose(0, 1))
    return out_NBO


def _outer(dout_NBO: Tensor, x_NXF: Tensor) -> Tensor:
    """The weights' gradient, [B, O, F]."""
    backend = find(Call("outer", ("gpu",), (dout_NBO, x_NXF)))
    if backend is not None:
        found: Tensor = backend.kernels("outer").run(dout_NBO, x_NXF)
        return found
    dweight_BOF = _outer_shape(dout_NBO, x_NXF)
    if x_NXF.size(1) == 1:
        dout_CN = dout_NBO.flatten(1).t()
        torch.mm(dout_CN, x_NXF.squeeze(1), out=dweight_BOF.flatten(0, 1))
    else:
        torch.bmm(dout_NBO.permute(1, 2, 0), x_NXF.transpose(0, 1), out=dweight_BOF)
    return dweight_BOF


def _linear_shape(x: Tensor, weight: Tensor) -> Tensor:
    return x.new_empty(x.size(0), weight.size(0), weight.size(1))


def _outer_shape(dout: Tensor, x: Tensor) -> Tensor:
    return x.new_empty(*dout.shape[1:], x.size(2))


def _save_linear(ctx: Any, inputs: Any, output: Any) -> None:
    x_NXF, weight_BOF = inputs
    _save_factors(ctx, x_NXF, weight_BOF, sets=x_NXF.size(1))


def _save_outer(ctx: Any, inputs: Any, output: Any) -> None:
    dout_NBO, x_NXF = inputs
    _save_factors(ctx, dout_NBO, x_NXF, sets=x_NXF.size(1))


def _save_factors(ctx: Any, first: Tensor, second: Tensor, sets: int) -> None:
    ctx.wanted = (first.requires_grad, second.requires_grad)
    ctx.sets = sets
    # The gradient of one factor needs the other.
    saved = (first if ctx.wanted[1] else None, second if ctx.wanted[0] else None)
    ctx.save_for_backward(*saved)


def _linear_gradient(ctx: Any, dout_NBO: Tensor) -> tuple[Tensor | None, ...]:
    x_NXF, weight_BOF = ctx.saved_tensors
    dx = dweight = None
    if ctx.wanted[0]:
        dx = _summed(call("dense_linear", dout_NBO, weight_BOF.mT), ctx.sets)
    if ctx.wanted[1]:
        dweight = call("dense_outer", dout_NBO, x_NXF)
    return dx, dweight


def _outer_gradient(ctx: Any, d_BOF: Tensor) -> tuple[Tensor | None, ...]:
    dout_NBO, x_NXF = ctx.saved_tensors
    ddout = dx = None
    if ctx.wanted[0]:
        ddout = call("dense_linear", x_NXF, d_BOF)
    if ctx.wanted[1]:
        dx = _summed(call("dense_linear", dout_NBO, d_BOF.mT), ctx.sets)
    return ddout, dx


def _summed(gradient_NBF: Tensor, sets: int) -> Tensor:
    """The gradient of features that all models may share."""
    if sets == gradient_NBF.size(1):
        return gradient_NBF
    return gradient_NBF.sum(1, keepdim=True)


def _fold_linear(info: Any, in_dims: Any, x: Tensor, weight: Tensor) -> Any:
    size = info.batch_size
    x_dim, weight_dim = in_dims
    # A tensor that all calls share is not repeated.
    if weight_dim is None:
        x = fold(x, x_dim, 0, size)
        return call("dense_linear", x, weight).unflatten(0, (size, -1)), 0
    if x_dim is None and x.size(1) > 1:
        weight = fold(weight, weight_dim, 1, size)
        return call("dense_linear", x, weight).unflatten(2, (size, -1)), 2
    weight = fold(weight, weight_dim, 0, size)
    x = _fold_features(x, x_dim, weight.size(0) // size)
    return call("dense_linear", x, weight).unflatten(1, (size, -1)), 1


def _fold_outer(info: Any, in_dims: Any, dout: Tensor, x: Tensor) -> Any:
    size = info.batch_size
    dout_dim, x_dim = in_dims
    if dout_dim is None:
        x = fold(x, x_dim, 2, size)
        return call("dense_outer", dout, x).unflatten(2, (size, -1)), 2
    if x_dim is None and x.size(1) > 1:
        dout = fold(dout, dout_dim, 2, size)
        return call("dense_outer", dout, x).unflatten(1, (size, -1)), 1
    dout = fold(dout, dout_dim, 1, size)
    x = _fold_features(x, x_dim, dout.size(1) // size)
    return call("dense_outer", dout, x).unflatten(0, (size, -1)), 0


def _fold_features(x: Tensor, dim: int | None, models: int) -> Tensor:
    """Features for that many models in each call, or for all models of all calls."""
    if dim is None:
        return x
    return x.movedim(dim, 1).expand(-1, -1, models, -1).flatten(1, 2)


register(
    "dense_linear(Tensor x, Tensor weight) -> Tensor",
    {ELSEWHERE: _linear},
    shapes=_linear_shape,
    save=_save_linear,
    gradient=_linear_gradient,
    fold=_fold_linear,
)
register(
    "dense_outer(Tensor dout, Tensor x) -> Tensor",
    {ELSEWHERE: _outer},
    shapes=_outer_shape,
    save=_save_outer,
    gradient=_outer_gradient,
    fold=_fold_outer,
)
