"""What an attention layer is told of its edges: features, weights and biases."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch_geometric.utils import is_sparse, scatter

from tempergat.nn.adjacency import Adjacency, resolve
from tempergat.ops import Graph, gather_rows, is_tracing

if TYPE_CHECKING:
    from tempergat.nn.conv._base import AttentionLayer

# The leading dimensions of x: one feature set has none.
Sets = tuple[int, ...]
# edge_attr, edge_weight and edge_bias.
EdgeValues = tuple[Tensor | None, Tensor | None, Tensor | None]
# What an added self-loop has.
_OF_LOOPS = {"edge_weight": 1.0, "edge_bias": 0.0}


def resolve_edges(
    layer: AttentionLayer,
    edge_index: Any,
    sizes: tuple[int, int],
    of_edges: EdgeValues,
    sets: Sets,
    static_shapes: bool,
    mode: str,
) -> tuple[Adjacency, Tensor | None, Tensor | None, Tensor | None]:
    """The graph, and the values of all its edges, added self-loops included.

    Values that each feature set has of its own come one set after another.

    Args:
        layer: The layer.
        edge_index: The edges as the layer got them.
        sizes: Number of source and target nodes.
        of_edges: The values as the layer got them.
        sets: The leading dimensions of x.
        static_shapes: Whether a graph that is being traced may be padded.
        mode: The `execution_mode`.
    """
    attr, weight, bias = of_edges
    attr = _check_edge_attr(layer, attr, sets, mode)
    reverse = layer.target_to_source
    adjacency = resolve(
        edge_index,
        sizes,
        self_loops=layer.add_self_loops,
        reverse=reverse,
        static_shapes=static_shapes,
        mode=mode,
        cache=layer.cache,
    )
    graph = adjacency.graph
    if attr is None and layer.edge_dim is not None:
        attr = _check_edge_attr(layer, adjacency.values, sets, mode)
    if attr is not None:
        attr = add_loop_features(graph, attr, layer.fill_value, reverse)
        attr = attr.flatten(0, -2) if sets else attr
    if weight is not None or bias is not None:
        given = (graph, sets, edge_index)
        weight = _edge_numbers(layer.heads, "edge_weight", weight, *given)
        bias = _edge_numbers(layer.heads, "edge_bias", bias, *given)
    return adjacency, attr, weight, bias


def _check_edge_attr(
    layer: AttentionLayer, edge_attr: Tensor | None, sets: Sets, mode: str
) -> Tensor | None:
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


def _edge_numbers(
    heads: int, name: str, values: Tensor | None, graph: Graph, sets: Sets, given: Any
) -> Tensor | None:
    """``edge_weight`` or ``edge_bias`` of all edges, added self-loops included.

    Args:
        heads: The layer's number of heads.
        name: Which of them.
        values: Of the edges that were given: [E] or [E, heads], or with feature
            sets also [..., E] or [..., E, heads].
        graph: The graph of one feature set.
        sets: The leading dimensions of x.
        given: The layer's ``edge_index``.

    Returns:
        [E'] or [E', heads]; those of one feature set after those of another, if
        each has its own.

    Raises:
        ValueError: They do not fit the edges.
        TypeError: They are not floating-point numbers.
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
    edges = graph.num_edges
    # A matrix with a row for each edge has a column for each head.
    own = values.dim() > 2 or (values.dim() == 2 and values.size(0) != edges)
    axis = len(sets) if own else 0
    shape = tuple(values.shape)
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
        kept = _kept_edges(graph)
        if kept is not None:
            values = values.index_select(axis, kept)
        loops = (*shape[:axis], graph.num_loops, *rest[1:])
        values = torch.cat([values, values.new_full(loops, _OF_LOOPS[name])], axis)
    return values.flatten(0, axis) if own else values


def add_loop_features(
    graph: Graph, edge_attr: Tensor, fill_value: float | Tensor | str, reverse: bool
) -> Tensor:
    """The features of all edges of the graph, those of added self-loops included.

    Args:
        graph: The graph.
        edge_attr: The features of the edges that were given, [E, D], or [..., E, D].
        fill_value: The self-loops' features: a number, a tensor, or how to reduce
            those of the other edges at the node.
        reverse: Whether messages run from row 1 of ``edge_index`` to row 0.

    Raises:
        ValueError: There is not one row per edge.
    """
    if edge_attr.size(-2) != graph.num_edges:
        raise ValueError(
            f"edge_attr has {edge_attr.size(-2)} rows, but edge_index has "
            f"{graph.num_edges} edges"
        )
    if not graph.self_loops:
        return edge_attr
    kept = _kept_edges(graph)
    if kept is not None:
        if edge_attr.dim() == 2:
            edge_attr = gather_rows(edge_attr, kept)
        else:
            edge_attr = edge_attr.index_select(-2, kept)
    if isinstance(fill_value, str):
        # PyG reduces over row 1 of edge_index, whatever the flow.
        rows = max(graph.num_src, graph.num_dst) + 1
        num_given = graph.num_all_edges - graph.num_loops
        ends = (graph.src if reverse else graph.dst)[:num_given]
        if graph.padded:
            given = graph.dst[:num_given]
            ends = torch.where(given == graph.num_dst, rows - 1, ends)
        axis = edge_attr.dim() - 2
        loops = scatter(edge_attr, ends.long(), axis, rows, fill_value)
        loops = loops.narrow(axis, 0, graph.num_loops)
    else:
        filled = torch.as_tensor(
            fill_value, dtype=edge_attr.dtype, device=edge_attr.device
        )
        shape = (*edge_attr.shape[:-2], graph.num_loops, edge_attr.size(-1))
        loops = filled.expand(shape)
    return torch.cat([edge_attr, loops], dim=-2)


def _kept_edges(graph: Graph) -> Tensor | None:
    """Which of the given edges a graph with added self-loops has; None for all."""
    num_given = graph.num_all_edges - graph.num_loops
    # A compiler cannot ask how many self-loops were dropped.
    unknown = is_tracing() and not graph.padded
    if unknown or num_given != graph.num_edges:
        return graph.edge_id[:num_given]
    return None
