"""The linear maps of a layer and the node features they take."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from torch_geometric.nn.dense.linear import Linear

from tempergat.ops import (
    SparseFeatures,
    dense_linear,
    in_forward_mode,
    in_transform,
    ordinary_tensors,
    seeded_dropout,
    sparse_linear,
    tensor_cache,
)

Features = Tensor | SparseFeatures


def make_projection(in_channels: int, out_channels: int, bias: bool) -> Linear:
    """A linear map as PyG's attention layers have it."""
    return Linear(in_channels, out_channels, bias, weight_initializer="glorot")


def as_features(x: Features) -> Features:
    """Converts torch's sparse matrices to sparse features, once per tensor."""
    if isinstance(x, Tensor) and x.layout != torch.strided:
        features: SparseFeatures = tensor_cache.get(
            x, "features", lambda: SparseFeatures.from_torch(x)
        )
        return features
    return x


def drop_features(x: Features, rate: float, seed: Tensor) -> Features:
    """Dropout on a layer's input, drawn from the seed and the element's position."""
    if isinstance(x, SparseFeatures):
        return x.dropout(rate, seed)
    return seeded_dropout(x, rate, seed)


class BatchedProjection:
    """Several linear maps of the same node features, computed as one product.

    Worthwhile where many models run at once (`models_are_batched`): the features are
    read once for all maps of all models.

    Args:
        x: The features.
        lins: The maps. `project` calls those that are more than a product one by one.
    """

    def __init__(self, x: Tensor, lins: Sequence[Linear]) -> None:
        self._x = x
        self._products: dict[Linear, Tensor] = {}
        plain = [lin for lin in lins if is_plain(lin)]
        if plain:
            out = dense_linear(x, torch.cat([lin.weight for lin in plain]))
            parts = torch.split(out, [lin.out_channels for lin in plain], dim=-1)
            self._products = dict(zip(plain, parts, strict=True))

    def project(self, lin: Linear) -> Tensor:
        """The result of one of the maps."""
        if lin not in self._products:
            return project(lin, self._x)
        return _add_bias(self._products[lin], lin)


class FirstRows:
    """The first rows of what is projected as a whole.

    Args:
        x: The features of all rows.
        count: How many rows.
    """

    def __init__(self, x: SparseFeatures | BatchedProjection, count: int) -> None:
        self._x = x
        self._count = count

    def project(self, lin: Linear) -> Tensor:
        """The first rows of the result of a map."""
        return project(lin, self._x)[: self._count]


Projectable = Features | BatchedProjection | FirstRows


def first_rows(x: Projectable, count: int) -> Projectable:
    """The features of the first nodes.

    Args:
        x: The features of all nodes.
        count: How many of them.
    """
    if isinstance(x, Tensor):
        return x[:count]
    assert not isinstance(x, FirstRows)
    return FirstRows(x, count)


def project(lin: Linear, x: Projectable) -> Tensor:
    """Applies a linear map to node features in any form."""
    if isinstance(x, BatchedProjection | FirstRows):
        return x.project(lin)
    is_sparse = isinstance(x, SparseFeatures)
    if getattr(lin, "in_channels", 1) <= 0 and (is_sparse or _in_transform()):
        # A lazy map takes its width from the first tensor it is called with.
        with ordinary_tensors(lin.weight):
            lin(torch.empty(0, x.size(-1), device=x.device, dtype=x.dtype))
    if isinstance(x, SparseFeatures):
        if is_plain(lin):
            return sparse_linear(x, lin.weight, lin.bias)
        x = x.to_dense()
    elif models_are_batched() and is_plain(lin):
        return _add_bias(dense_linear(x, lin.weight), lin)
    out: Tensor = lin(x)
    return out


def multiply(x: Tensor, weight: Tensor) -> Tensor:
    """``x @ weight.T`` for one model, or for many models at once."""
    return dense_linear(x, weight) if models_are_batched() else linear(x, weight)


def models_are_batched() -> bool:
    """Whether torch.func runs the layer, perhaps with a stack of many models."""
    return _in_transform() and not in_forward_mode()


def is_plain(lin: nn.Module) -> bool:
    """Whether calling a map only multiplies by its weight and adds its bias.

    False for a map that has hooks, that does not know its input width yet, or that a
    user has replaced by another kind of module.
    """
    hooks = (
        lin._forward_pre_hooks,
        lin._forward_hooks,
        lin._backward_pre_hooks,
        lin._backward_hooks,
    )
    return (
        getattr(type(lin), "forward", None) is Linear.forward
        and "forward" not in lin.__dict__
        and not any(hooks)
    )


def _add_bias(product: Tensor, lin: Linear) -> Tensor:
    # Autocast may have lowered the product's precision. The bias must not raise it.
    return product if lin.bias is None else product + lin.bias.to(product.dtype)


def _in_transform() -> bool:
    return not torch.compiler.is_compiling() and in_transform()
