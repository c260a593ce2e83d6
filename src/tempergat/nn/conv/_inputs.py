"""Checks of what an attention layer is called with, and many sets of features."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import torch
from torch import Tensor

from tempergat.nn.adjacency import num_targets
from tempergat.nn.projection import Features, Sides, as_features
from tempergat.ops import Graph, SparseFeatures


def check_count(name: str, value: object) -> None:
    """Raises ValueError unless the value is a positive whole number."""
    if not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")


def check_rate(name: str, value: float) -> None:
    """Raises ValueError unless the value is a dropout rate."""
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{name} must be between 0 and 1, got {value!r}")


def check_features(
    x: Features | tuple[Features, Features | None], projections: Sides[Any]
) -> Sides[Features]:
    """Node features by side.

    Args:
        x: The layer's input.
        projections: The linear maps that will take them.

    Raises:
        TypeError: They are not tensors.
        ValueError: Their shape does not fit the maps.
    """
    x_src, x_dst = x if isinstance(x, (tuple, list)) else (x, x)
    if x_src is None:
        raise ValueError("x must hold the source nodes' features, got None")
    sides = Sides(x_src, x_dst).map(as_features)
    _check_features("source", sides.src, projections.src)
    if sides.dst is not None:
        _check_features("target", sides.dst, projections.dst)
        if not sides.is_shared and sides.src.shape[:-2] != sides.dst.shape[:-2]:
            raise ValueError(
                f"x has shape {list(sides.src.shape)} for the source nodes and "
                f"{list(sides.dst.shape)} for the target nodes; give both as many "
                "feature sets: expand one of them"
            )
    return sides


def _check_features(side: str, x: Features, projection: Any) -> None:
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
    expected = getattr(projection, "in_channels", None)
    if expected is None:
        return
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


def count_nodes(
    x: Sides[Features],
    size: tuple[int | None, int | None] | None,
    edge_index: Any,
) -> tuple[int, int]:
    """The number of source and target nodes.

    Raises:
        ValueError: ``size`` contradicts the features.
    """
    num_src = x.src.size(-2)
    given_src, given_dst = (None, None) if size is None else size
    if x.is_shared and isinstance(edge_index, Graph) and edge_index.num_src == num_src:
        # Fewer targets than sources are the first of them.
        num_dst = min(edge_index.num_dst, num_src)
    elif x.dst is not None:
        num_dst = x.dst.size(-2)
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


def stack_sets(x: Sides[Features], graph: Graph) -> Sides[Tensor]:
    """The nodes of all feature sets as rows, those of one set after another's.

    Args:
        x: The feature sets, [..., num_nodes, channels].
        graph: The graph of one set; where it has fewer targets than sources, and both
            sides share x, they are the first nodes of each set.

    Raises:
        ValueError: There is no feature set.
    """
    if 0 in x.src.shape[:-2]:
        raise ValueError(
            f"x has shape {list(x.src.shape)}, which holds no feature set; give at "
            "least one"
        )
    if x.is_shared and graph.num_dst < graph.num_src:
        assert isinstance(x.src, Tensor)
        x = Sides(x.src, x.src[..., : graph.num_dst, :])
    return x.map(lambda side: side.flatten(0, -2))


def cut_to_targets(values: Sides[Tensor], graph: Graph) -> Sides[Tensor]:
    """Values by side, where the targets' side may hold those of all source nodes.

    Args:
        values: One row per node.
        graph: Its targets are the first of the sources where it has fewer.
    """
    if values.dst is None or values.dst.size(0) == graph.num_dst:
        return values
    return Sides(values.src, values.dst[: graph.num_dst])


def check_device(edge_index: Any, x: Features) -> None:
    """Raises ValueError unless edges and features are on one device."""
    device = getattr(edge_index, "device", None)
    if isinstance(device, torch.device) and device != x.device:
        raise ValueError(
            f"edge_index is on {device}, but x is on {x.device}; move one of them with "
            f".to()"
        )
