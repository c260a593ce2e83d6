"""The linear maps of a layer, and the features of source and target nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from torch_geometric.nn.dense.linear import Linear

from tempergat.ops import (
    SparseFeatures,
    dense_linear,
    execution_mode,
    has_global_hooks,
    ordinary_tensors,
    seeded_dropout,
    sparse_linear,
    tensor_cache,
)

Features = Tensor | SparseFeatures
T = TypeVar("T", covariant=True)
Result = TypeVar("Result")
# Features per node from which reading them costs more than to join the maps' weights.
_WIDE = 512


class Sides(Generic[T]):
    """One value for source nodes and one for target nodes.

    Attributes:
        src: The sources' value.
        dst: The targets' value: the same object as ``src`` where both sides share
            one value, None where the targets have none.
    """

    __slots__ = ("dst", "src")

    def __init__(self, src: T, dst: T | None) -> None:
        self.src = src
        self.dst = dst

    @property
    def is_shared(self) -> bool:
        """Whether both sides share one value."""
        return self.dst is self.src

    def map(
        self, function: Callable[..., Result], *others: Sides[Any]
    ) -> Sides[Result]:
        """Applies a function to each side, once where the sides share everything.

        Args:
            function: Takes one side's value, then those of ``others`` on that side.
            *others: More values by side. The result has no targets where one of these
                has none.
        """
        # Plain loops: a layer calls this several times in every forward pass.
        src = function(self.src, *[other.src for other in others])
        if self.dst is None:
            return Sides(src, None)
        shared = self.dst is self.src
        for other in others:
            if other.dst is None:
                return Sides(src, None)
            shared = shared and other.dst is other.src
        if shared:
            return Sides(src, src)
        return Sides(src, function(self.dst, *[other.dst for other in others]))


def make_projection(in_channels: int, out_channels: int, bias: bool) -> Linear:
    """A linear map as PyG's attention layers have it."""
    return Linear(in_channels, out_channels, bias, weight_initializer="glorot")


def as_features(x: Features) -> Features:
    """Converts torch's sparse matrices to sparse features, once per tensor."""
    if isinstance(x, Tensor) and x.layout != torch.strided:
        if x.dim() != 2:
            raise ValueError(
                f"sparse features must have shape [num_nodes, channels], got "
                f"{list(x.shape)}; pass many feature sets as x.to_dense()"
            )
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


class NodeInputs:
    """The node features of a layer, and its linear maps of them.

    All maps are one product where that pays, because it reads the features once: where
    `torch.func` runs the layer, perhaps with a stack of many models, and where nodes
    have many features.

    Args:
        x: The features.
        mode: The `execution_mode`.
        count: How many of the first nodes `project` of the targets is asked for; None
            for all.
    """

    def __init__(self, x: Features, mode: str, count: int | None = None) -> None:
        self._x = x
        self._mode = mode
        self._count = count
        self._products: dict[Linear, Tensor] = {}

    @property
    def joins(self) -> bool:
        """Whether `multiply_all` pays."""
        if self._mode == "transformed":
            return isinstance(self._x, Tensor)
        if self._mode != "eager" or self._count is not None:
            return False
        return self._x.size(-1) >= _WIDE and not has_global_hooks()

    def multiply_all(self, maps: Iterable[Linear | None]) -> None:
        """Computes the products of all maps that will be asked for, as one."""
        once = dict.fromkeys(lin for lin in maps if lin is not None)
        lins = [lin for lin in once if is_plain(lin)]
        if len(lins) < (1 if self._mode == "transformed" else 2):
            return
        weight = torch.cat([lin.weight for lin in lins])
        if isinstance(self._x, SparseFeatures):
            out = sparse_linear(self._x, weight)
        elif self._mode == "transformed":
            out = dense_linear(self._x, weight)
        else:
            out = linear(self._x, weight)
        parts = torch.split(out, [lin.out_channels for lin in lins], dim=-1)
        self._products = dict(zip(lins, parts, strict=True))

    def project(self, lin: Linear) -> Tensor:
        """The result of a map."""
        if lin in self._products:
            return _add_bias(self._products[lin], lin)
        return project(lin, self._x, self._mode)

    def project_targets(self, lin: Linear) -> Tensor:
        """The result of a map for the nodes that are targets."""
        if self._count is None:
            return self.project(lin)
        if isinstance(self._x, Tensor) and lin not in self._products:
            return project(lin, self._x[: self._count], self._mode)
        return self.project(lin)[: self._count]


def project(lin: Linear, x: Features, mode: str | None = None) -> Tensor:
    """Applies a linear map to node features in any form.

    Args:
        lin: The map.
        x: The features.
        mode: The `execution_mode`, where it is known.
    """
    mode = execution_mode() if mode is None else mode
    if isinstance(x, Tensor) and mode not in ("transformed", "forward"):
        out: Tensor = lin(x)
        return out
    if getattr(lin, "in_channels", 1) <= 0:
        # A lazy map takes its width from the first tensor it is called with.
        with ordinary_tensors(lin.weight):
            lin(torch.empty(0, x.size(-1), device=x.device, dtype=x.dtype))
    if isinstance(x, SparseFeatures):
        if is_plain(lin):
            return sparse_linear(x, lin.weight, lin.bias)
        x = x.to_dense()
    elif mode == "transformed" and is_plain(lin):
        return _add_bias(dense_linear(x, lin.weight), lin)
    out = lin(x)
    return out


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
