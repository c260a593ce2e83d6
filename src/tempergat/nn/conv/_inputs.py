"""Checks of what an attention layer is called with, and many sets of features."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import torch
from torch import Tensor

from tempergat.nn.adjacency import num_targets
from tempergat.nn.projection import Features, as_features
from tempergat.ops import Graph, SparseFeatures

# Those of source and target nodes: the same object where both share one, None for
# targets without features.
NodeFeatures = tuple[Features, Features | None]


def check_count(name: str, value: object) -> None:
    """Raises ValueError unless the value is a positive whole number."""
    if not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")


def check_rate(name: str, value: float) -> None:
    """Raises ValueError unless the value is a dropout rate."""
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{name} must be between 0 and 1, got {value!r}")


def check_features(x: Any, maps: tuple[Any, Any]) -> NodeFeatures:
    """The features of source and of target nodes, if they fit these linear maps."""
    x_src, x_dst = x if isinstance(x, (tuple, list)) else (x, x)
    if x_src is None:
        raise ValueError("x must hold the source nodes' features, got None")
    is_shared = x_dst is x_src
    x_src = _checked("source", x_src, maps[0])
    if is_shared and maps[0] is maps[1]:
        return x_src, x_src
    if x_dst is not None:
        x_dst = _checked("target", x_src if is_shared else x_dst, maps[1])
        if not is_shared and x_src.shape[:-2] != x_dst.shape[:-2]:
            raise ValueError(
                f"x has shape {list(x_src.shape)} for the source nodes and "
                f"{list(x_dst.shape)} for the target nodes; give both as many "
                "feature sets: expand one of them"
            )
    return x_src, x_dst


def _checked(side: str, x: Any, lin: Any) -> Features:
    if isinstance(x, Tensor) and x.layout != torch.strided:
        x = as_features(x)
    if not isinstance(x, (Tensor, SparseFeatures)):
        raise TypeError(
            f"x must be a tensor, got {type(x).__name__} for the {side} nodes; "
            f"convert it with torch.as_tensor(x)"
        )
    if len(x.shape) < 2:
        raise ValueError(
            f"x must have shape [num_nodes, channels], or [..., num_nodes, channels] "
            f"for many feature sets, got {list(x.shape)} for the {side} nodes"
        )
    # A module that a user put in the place of a linear map checks for itself.
    expected = getattr(lin, "in_channels", None)
    if expected is None:
        return x
    if not x.dtype.is_floating_point:
        raise TypeError(
            f"x must hold floating-point numbers, got {x.dtype} for the {side} nodes; "
            "convert it with x.float()"
        )
    if expected > 0 and x.size(-1) != expected:
        raise ValueError(
            f"x has {x.size(-1)} {side} features per node, but the layer was made for "
            f"in_channels={expected}"
        )
    return x


def count_nodes(
    x: NodeFeatures, size: tuple[int | None, int | None] | None, edge_index: Any
) -> tuple[int, int]:
    """The number of source and target nodes, if ``size`` agrees."""
    x_src, x_dst = x
    num_src = x_src.size(-2)
    given_src, given_dst = (None, None) if size is None else size
    is_graph = isinstance(edge_index, Graph) and edge_index.num_src == num_src
    if is_graph and x_dst is x_src:
        # Fewer targets than sources are the first of them.
        num_dst = min(edge_index.num_dst, num_src)
    elif x_dst is not None:
        num_dst = x_dst.size(-2)
    elif given_dst is not None:
        num_dst = given_dst
    else:
        num_dst = num_targets(edge_index) or num_src
    if given_src not in (None, num_src) or given_dst not in (None, num_dst):
        raise ValueError(
            f"size is {(given_src, given_dst)}, but x has {num_src} source and "
            f"{num_dst} target rows"
        )
    return num_src, num_dst


def stack_sets(x: NodeFeatures, graph: Graph) -> NodeFeatures:
    """The nodes of all feature sets as rows, those of one set after another's.

    Where the graph of one set has fewer targets than sources, and both sides share x,
    they are the first nodes of each set.
    """
    x_src, x_dst = x
    if 0 in x_src.shape[:-2]:
        raise ValueError(
            f"x has shape {list(x_src.shape)}, which holds no feature set; give at "
            "least one"
        )
    assert isinstance(x_src, Tensor)
    rows = x_src.flatten(0, -2)
    if x_dst is x_src:
        if graph.num_dst == graph.num_src:
            return rows, rows
        x_dst = x_src[..., : graph.num_dst, :]
    return rows, x_dst.flatten(0, -2) if isinstance(x_dst, Tensor) else None


def check_device(edge_index: Any, x: Features) -> None:
    """Raises ValueError unless edges and features are on one device."""
    device = getattr(edge_index, "device", None)
    if isinstance(device, torch.device) and device != x.device:
        raise ValueError(
            f"edge_index is on {device}, but x is on {x.device}; move one of them with "
            f".to()"
        )
