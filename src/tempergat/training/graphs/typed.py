"""A typed graph as one graph of a single type.

The nodes of the target type come first, then types by their distance from it, and the
edges of all types are put together. The last layer is then computed for the target
type alone, the one before it for the types that have edges to it as well, and so on:
what no target node can see is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import torch
from torch import Tensor
from torch_geometric.data import HeteroData

from tempergat.nn import Features, NodeType, TypedFeatures
from tempergat.ops import Graph


def node_types_of(data: HeteroData, target: str) -> tuple[NodeType, ...]:
    """The node types: the one to classify, then by their distance from it.

    Args:
        data: The graph.
        target: The node type to classify.
    """
    distance = _distances(data, target)
    names = sorted(data.node_types, key=lambda kind: distance[kind])
    features = [data[name].get("x") for name in names]
    return tuple(
        NodeType(name, int(data[name].num_nodes), 0 if x is None else int(x.size(1)))
        for name, x in zip(names, features, strict=True)
    )


def typed_inputs(
    data: HeteroData, target: str, prepare: Callable[[Tensor, str], Features]
) -> TypedFeatures:
    """All nodes of a typed graph, for `TypedNodeClassifier`.

    Args:
        data: The graph.
        target: The node type to classify.
        prepare: Called with the features of each type that has some, and the type.
    """
    kinds = node_types_of(data, target)
    inputs = (
        prepare(data[kind.name].x, kind.name) if kind.num_features else None
        for kind in kinds
    )
    return TypedFeatures(tuple(inputs), kinds[0].num_nodes)


def union_graphs(
    data: HeteroData,
    target: str,
    num_layers: int,
    device: torch.device,
    *,
    whole: bool = False,
) -> tuple[Graph, ...]:
    """The graph of each layer, the first layer's first.

    Args:
        data: The graph.
        target: The node type to classify, whose nodes come first.
        num_layers: Number of layers.
        device: Where the graphs are wanted.
        whole: Whether the first layer has the edges to all nodes. Graph convolution
            takes the degrees of all nodes from it.
    """
    distance = _distances(data, target)
    kinds = node_types_of(data, target)
    made: dict[int, Graph] = {}
    graphs = []
    for after in range(num_layers - 1, -1, -1):
        targets = [k.num_nodes for k in kinds if distance[k.name] <= after]
        sources = [k.num_nodes for k in kinds if distance[k.name] <= after + 1]
        if after == num_layers - 1:
            # The first layer is called with all nodes.
            sources = [kind.num_nodes for kind in kinds]
            targets = sources if whole else targets
        count = len(targets)
        if count not in made or made[count].num_src != sum(sources):
            ends = frozenset(kind.name for kind in kinds[:count])
            edges = union_edges(data, target, ends)
            made[count] = Graph(edges.to(device), (sum(sources), sum(targets)))
        graphs.append(made[count])
    return tuple(graphs)


def union_edges(
    data: HeteroData, target: str, ends: Collection[str] | None = None
) -> Tensor:
    """The edges of all types between all nodes, [2, E].

    Args:
        data: The graph.
        target: The node type to classify, whose nodes come first.
        ends: The node types whose incoming edges are taken; None for all.
    """
    start, offsets = 0, {}
    for kind in node_types_of(data, target):
        offsets[kind.name] = start
        start += kind.num_nodes
    dtype = torch.int32 if start < 2**31 else torch.int64
    taken = [kind for kind in data.edge_types if ends is None or kind[2] in ends]
    count = sum(int(data[kind].edge_index.size(1)) for kind in taken)
    # Written in place: the edges are the largest thing in memory here.
    edges, done = torch.empty(2, count, dtype=dtype), 0
    for edge_type in taken:
        source, _, end = edge_type
        given = data[edge_type].edge_index.cpu()
        part = edges[:, done : done + given.size(1)]
        torch.add(given[0].to(dtype), offsets[source], out=part[0])
        torch.add(given[1].to(dtype), offsets[end], out=part[1])
        done += given.size(1)
    return edges


def _distances(data: HeteroData, target: str) -> dict[str, int]:
    """How many edges each node type is away from the target, against their direction.

    A type from which no edges lead to the target is farther away than all others.
    """
    distance = {target: 0}
    for step in range(1, len(data.node_types)):
        reached = set(distance)
        for source, _, end in data.edge_types:
            if end in reached:
                distance.setdefault(source, step)
    return {kind: distance.get(kind, len(data.node_types)) for kind in data.node_types}
