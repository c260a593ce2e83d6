"""Sampled batches: what each layer of a model gets of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from tempergat.nn.conv.gcn import batch_degree, with_frontier
from tempergat.nn.projection import Features
from tempergat.ops import Graph, SparseFeatures

LayerPart = tuple[Graph, dict[str, Any]]


@runtime_checkable
class HasLayerGraphs(Protocol):
    """The graphs of a sampled batch, like ``batch.graph`` of a sampler."""

    def for_layers(self, num_layers: int, self_loops: bool) -> Sequence[Graph]:
        """One graph per layer, the first layer's first."""


def layer_graphs(
    given: Sequence[Graph] | HasLayerGraphs, num_layers: int, self_loops: bool
) -> Sequence[Graph]:
    """The graph of each layer.

    Args:
        given: The graphs themselves, or the object that makes them.
        num_layers: Number of layers.
        self_loops: Whether the layers add self-loops.

    Raises:
        TypeError: Something else than graphs was given.
        ValueError: There is not one graph per layer, or one does not follow another.
    """
    if isinstance(given, HasLayerGraphs):
        return given.for_layers(num_layers, self_loops)
    for graph in given:
        if not isinstance(graph, Graph):
            raise TypeError(
                "a tuple in place of edge_index must hold one tempergat.Graph per "
                f"layer, got {type(graph).__name__}"
            )
    if len(given) != num_layers:
        raise ValueError(
            f"{len(given)} graphs were given for {num_layers} layers; give one per "
            "layer, the first layer's first"
        )
    for number, (graph, following) in enumerate(pairwise(given)):
        sources = following.num_src
        if sources > graph.num_dst:
            raise ValueError(
                f"layer {number + 2} has a graph with {sources} source nodes, but "
                f"layer {number + 1} one with {graph.num_dst} targets; the sources of "
                "a layer are among the targets of the one before"
            )
    return given


def layer_parts(
    graphs: Sequence[Graph],
    edge_attr: Tensor | None,
    edge_weight: Tensor | None,
    has_degrees: bool,
) -> list[LayerPart]:
    """The graph of each layer with the further arguments of the layer.

    Args:
        graphs: One graph per layer.
        edge_attr: Features of all edges of the batch.
        edge_weight: Weights of all edges of the batch.
        has_degrees: Whether layers normalise by degrees. They are those of the whole
            batch in every layer, as of PyG's ``GCNConv`` on a batch.
    """
    degree = None
    if has_degrees:
        first = graphs[0]
        weights = None if edge_weight is None else edge_weight[: first.num_edges]
        degree = with_frontier(batch_degree(first, weights), first.num_src)
    parts = []
    for graph in graphs:
        options: dict[str, Any] = {}
        if edge_attr is not None:
            options["edge_attr"] = edge_attr[: graph.num_edges]
        if edge_weight is not None:
            options["edge_weight"] = edge_weight[: graph.num_edges]
        if degree is not None:
            options["degree"] = degree[: graph.num_src]
        parts.append((graph, options))
    return parts


def first_nodes(h: Features, count: int) -> Features:
    """The features of the first nodes.

    Raises:
        ValueError: There are not so many nodes.
    """
    if h.size(0) == count:
        return h
    if h.size(0) < count:
        raise ValueError(
            f"x has {h.size(0)} rows, but the first layer's graph has {count} source "
            "nodes; give the features of all nodes of the batch"
        )
    dense = h.to_dense() if isinstance(h, SparseFeatures) else h
    return dense[:count]
