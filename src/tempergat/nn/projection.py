"""The linear maps of a layer, and the features of source and target nodes."""

from __future__ import annotations

from typing import Any

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
# Features per node from which reading them costs more than to join the maps' weights.
_WIDE = 512


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


def project_nodes(
    x: tuple[Features, Features | None],
    num_dst: int,
    mode: str,
    sources: tuple[Linear, ...],
    target: Linear,
    gates: tuple[Linear | None, Linear | None],
    skip: Linear | None,
) -> tuple[list[Any], Any, tuple[Any, Any], Any]:
    """What linear maps give for source and target nodes.

    All maps are one product where that pays, because it reads the features once: where
    `torch.func` runs the layer, perhaps with a stack of many models, and where nodes
    have many features.

    Args:
        x: The features of both; one object where the targets are the first sources,
            None for targets without features.
        num_dst: Number of target nodes.
        mode: The `execution_mode`.
        sources: The maps of the sources.
        target: The map of the targets.
        gates: The gate's maps of sources and of targets; None for absent ones.
        skip: The skip's map of the targets; None for no skip.

    Returns:
        What ``sources``, ``target``, ``gates`` and ``skip`` give; None for absent ones.
        Where both sides share x and a map, they share one tensor, the sources'.
    """
    x_src, x_dst = x
    is_shared = x_dst is x_src
    has_fewer = is_shared and num_dst < x_src.size(0)
    rows: Any = x_dst[:num_dst] if has_fewer and isinstance(x_dst, Tensor) else x_dst
    # Lazy maps are drawn in this order: those of a gate last.
    maps = (skip, *sources, target, *gates)
    of_sources = (*sources, gates[0])
    found: dict[nn.Module, Tensor] = {}
    if is_shared and (
        isinstance(x_src, Tensor)
        if mode == "transformed"
        else mode == "eager"
        and x_src.size(-1) >= _WIDE
        and not (has_fewer or has_global_hooks())
    ):
        found = _join(maps, x_src, mode)
    # `project` only calls the map then.
    is_direct = mode == "eager" and isinstance(x_src, Tensor)
    is_direct = is_direct and not isinstance(x_dst, SparseFeatures)
    results: list[Any] = []
    for k, lin in enumerate(maps):
        is_source = 0 < k <= len(sources) or k == len(maps) - 2
        if lin is None or (x_dst is None and not is_source):
            results.append(None)
            continue
        z = found.get(lin) if is_shared else None
        is_whole = is_source or (is_shared and k > 0 and lin in of_sources)
        if z is None:
            given = x_src if is_whole else rows
            z = lin(given) if is_direct else project(lin, given, mode)
            if is_whole and is_shared:
                found[lin] = z
        results.append(z if is_whole or not has_fewer else z[:num_dst])
    skipped, *z_src, z_dst, gate_src, gate_dst = results
    return z_src, z_dst, (gate_src, gate_dst), skipped


def _join(
    maps: tuple[Linear | None, ...], x: Features, mode: str
) -> dict[nn.Module, Tensor]:
    """The results of all maps that are plain, from one product."""
    once = dict.fromkeys(lin for lin in maps if lin is not None)
    lins = [lin for lin in once if is_plain(lin)]
    if len(lins) < (1 if mode == "transformed" else 2):
        return {}
    weight = torch.cat([lin.weight for lin in lins])
    if isinstance(x, SparseFeatures):
        out = sparse_linear(x, weight)
    else:
        out = dense_linear(x, weight) if mode == "transformed" else linear(x, weight)
    parts = torch.split(out, [lin.out_channels for lin in lins], dim=-1)
    return {lin: _add_bias(z, lin) for lin, z in zip(lins, parts, strict=True)}


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
