"""The linear maps of a layer and the inputs they take."""

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
    """Torch's own sparse matrices as sparse features, sorted once per tensor."""
    if isinstance(x, Tensor) and x.layout != torch.strided:
        features: SparseFeatures = tensor_cache.get(
            x, "features", lambda: SparseFeatures.from_torch(x)
        )
        return features
    return x


def many_models() -> bool:
    """Whether a torch.func transform runs a layer, for many models at once."""
    return _in_transform() and not in_forward_mode()


def _in_transform() -> bool:
    return not torch.compiler.is_compiling() and in_transform()


def is_product(lin: nn.Module) -> bool:
    """Whether calling a map is no more than a product with its weight, and its bias.

    Not so for one that has hooks, that a user has replaced by a module of another kind
    or that does not know its width yet.
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


def multiply(x: Tensor, weight: Tensor) -> Tensor:
    """`torch.nn.functional.linear`, fit for many models at once."""
    return dense_linear(x, weight) if many_models() else linear(x, weight)


def _with_bias(product: Tensor, lin: Linear) -> Tensor:
    # Autocast may have lowered the product; the bias must not raise it again.
    return product if lin.bias is None else product + lin.bias.to(product.dtype)


class Together:
    """Node features and all linear maps of them, by one product that reads them once.

    Args:
        x: The features.
        lins: The maps. Those that are more than a product are called one by one.
    """

    def __init__(self, x: Tensor, lins: Sequence[Linear]) -> None:
        self._x = x
        self._parts: dict[Linear, Tensor] = {}
        products = [lin for lin in lins if is_product(lin)]
        if products:
            out = dense_linear(x, torch.cat([lin.weight for lin in products]))
            parts = torch.split(out, [lin.out_channels for lin in products], dim=-1)
            self._parts = dict(zip(products, parts, strict=True))

    def project(self, lin: Linear) -> Tensor:
        """What one of the maps makes of them."""
        if lin not in self._parts:
            return project(lin, self._x)
        return _with_bias(self._parts[lin], lin)


Projectable = Features | Together


def project(lin: Linear, x: Projectable) -> Tensor:
    """A linear map of node features."""
    if isinstance(x, Together):
        return x.project(lin)
    is_sparse = isinstance(x, SparseFeatures)
    if getattr(lin, "in_channels", 1) <= 0 and (is_sparse or _in_transform()):
        # A lazy layer takes its width from the first tensor it is called with.
        with ordinary_tensors(lin.weight):
            lin(torch.empty(0, x.size(-1), device=x.device, dtype=x.dtype))
    if isinstance(x, SparseFeatures):
        if is_product(lin):
            return sparse_linear(x, lin.weight, lin.bias)
        x = x.to_dense()
    elif many_models() and is_product(lin):
        return _with_bias(dense_linear(x, lin.weight), lin)
    out: Tensor = lin(x)
    return out


def drop_features(x: Features, rate: float, seed: Tensor) -> Features:
    """Dropout on a layer's input, keyed by seed and (stored) element."""
    if isinstance(x, SparseFeatures):
        return x.dropout(rate, seed)
    return seeded_dropout(x, rate, seed)
