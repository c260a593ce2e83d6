"""What an attention layer is told of its edges: features, weights and biases."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch_geometric.utils import is_sparse, scatter

from tempergat.ops import Graph, gather_rows, is_tracing

if TYPE_CHECKING:
    from tempergat.nn.conv._base import AttentionLayer

# The leading dimensions of x: one feature set has none.
Sets = tuple[int, ...]
# What an added self-loop has.
_OF_LOOPS = {"edge_weight": 1.0, "edge_bias": 0.0}


def check_edge_attr(
    layer: AttentionLayer, edge_attr: Tensor | None, sets: Sets, mode: str
) -> Tensor | None:
    """The features of the edges that were given, [..., E, D], if they fit the layer."""
    if edge_attr is None:
        return None
    if layer.edge_dim is None:
        if layer.ignores_edge_attr:
            if mode != "traced":
                _warn_about_edge_attr(layer)
            return None
        raise ValueError(
            f"edge_attr of shape {list(edge_attr.shape)} was given, but the layer "
            f"has no edge_dim and could not use it; make the layer with "
            f"edge_dim={edge_attr.size(-1) if edge_attr.dim() > 1 else 1}, or do "
            f"not pass edge_attr"
        )
    if edge_attr.dim() == 1:
        edge_attr = edge_attr.unsqueeze(-1)
    elif edge_attr.dim() > 2 and tuple(edge_attr.shape[:-2]) != sets:
        raise ValueError(
            f"edge_attr has shape {list(edge_attr.shape)}, but x has "
            f"{list(sets) or 'no dimensions'} before nodes and channels; give "
            "[edges, features] for all feature sets, or expand edge_attr to these"
        )
    expected = getattr(layer.lin_edge, "in_channels", layer.edge_dim)
    if expected > 0 and edge_attr.size(-1) != expected:
        raise ValueError(
            f"edge_attr has {edge_attr.size(-1)} features per edge, but the layer "
            f"was made with edge_dim={expected}"
        )
    return edge_attr


def _warn_about_edge_attr(layer: AttentionLayer) -> None:
    if layer._warned_about_edge_attr:
        return
    layer._warned_about_edge_attr = True
    warnings.warn(
        "edge_attr is ignored, as by the PyG layer this one replaces: it was made "
        "without edge_dim",
        stacklevel=3,
    )


def features_of_all(layer: AttentionLayer, graph: Graph, edge_attr: Tensor) -> Tensor:
    """The features of all edges of a graph, [E', D], from `check_edge_attr`'s.

    Those of one feature set come after those of another, if each has its own.
    """
    axis = edge_attr.dim() - 2
    if edge_attr.size(axis) != graph.num_edges:
        raise ValueError(
            f"edge_attr has {edge_attr.size(-2)} rows, but edge_index has "
            f"{graph.num_edges} edges"
        )
    if graph.self_loops:
        edge_attr = _with_loops(
            graph, edge_attr, axis, layer.fill_value, layer.target_to_source
        )
    return edge_attr.flatten(0, axis) if axis else edge_attr


def numbers_of_all(
    heads: int, name: str, values: Tensor | None, graph: Graph, sets: Sets, given: Any
) -> Tensor | None:
    """``edge_weight`` or ``edge_bias`` of all edges of a graph, [E'] or [E', heads].

    Args:
        heads: The layer's number of heads.
        name: Which of them.
        values: Of the edges that were given: [E] or [E, heads], or with feature
            sets also [..., E] or [..., E, heads].
        graph: The graph of one feature set.
        sets: The leading dimensions of x.
        given: The layer's ``edge_index``.
    """
    if values is None:
        return None
    if is_sparse(given):
        raise ValueError(
            f"{name} needs edge_index as a [2, E] tensor or a tempergat.Graph, got "
            f"{type(given).__name__}: the order of a matrix's entries is not that "
            "of edges"
        )
    if not values.is_floating_point():
        raise TypeError(
            f"{name} must hold floating-point numbers, got {values.dtype}; convert "
            "it with .float(), a mask with torch.where(mask, 0.0, -torch.inf)"
        )
    edges, shape = graph.num_edges, tuple(values.shape)
    # A matrix with a row for each edge has a column for each head.
    own = values.dim() > 2 or (values.dim() == 2 and values.size(0) != edges)
    axis = len(sets) if own else 0
    rest = shape[axis:]
    # Size by size: a compiler does not compare tuples of unknown sizes.
    fits = len(rest) in (1, 2) and rest[0] == edges
    if len(rest) == 2:
        fits = fits and rest[1] == heads
    if own:
        same_sets = all(a == b for a, b in zip(shape, sets, strict=False))
        fits = fits and bool(sets) and same_sets
    if not fits:
        more = f", or these after the dimensions {list(sets)}" if sets else ""
        raise ValueError(
            f"{name} has shape {list(shape)}, but edge_index has {edges} edges and "
            f"the layer {heads} heads; give [{edges}] or "
            f"[{edges}, {heads}]{more}"
        )
    if graph.self_loops:
        values = _with_loops(graph, values, axis, _OF_LOOPS[name])
    return values.flatten(0, axis) if axis else values


def _with_loops(
    graph: Graph,
    values: Tensor,
    axis: int,
    fill_value: float | Tensor | str,
    reverse: bool = False,
) -> Tensor:
    """Values of the edges that were given, then those of added self-loops.

    ``fill_value`` gives these: a number, a tensor, or how to reduce those of the other
    edges at the node.
    """
    loops = graph.num_loops
    count = graph.num_all_edges - loops
    # A compiler cannot ask how many self-loops were dropped.
    if (is_tracing() and not graph.padded) or count != graph.num_edges:
        kept = graph.edge_id[:count]
        values = values.index_select(axis, kept) if axis else gather_rows(values, kept)
    if isinstance(fill_value, str):
        # PyG reduces over row 1 of edge_index, whatever the flow.
        rows = max(graph.num_src, graph.num_dst) + 1
        ends = (graph.src if reverse else graph.dst)[:count]
        if graph.padded:
            given = graph.dst[:count]
            ends = torch.where(given == graph.num_dst, rows - 1, ends)
        filled = scatter(values, ends.long(), axis, rows, fill_value)
        filled = filled.narrow(axis, 0, loops)
    else:
        shape = (*values.shape[:axis], loops, *values.shape[axis + 1 :])
        if isinstance(fill_value, Tensor):
            filled = fill_value.to(values).expand(shape)
        else:
            filled = values.new_full(shape, fill_value)
    return torch.cat([values, filled], dim=axis)
