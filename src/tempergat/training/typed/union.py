"""A typed graph as one graph of a single type.

The nodes of the target type come first, then those of the other types in the graph's
order; the edges of all types are put together.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch_geometric.data import HeteroData

from tempergat.nn import Features, NodeType, TypedFeatures


def node_types_of(data: HeteroData, target: str) -> tuple[NodeType, ...]:
    """The node types, the one to classify first.

    Args:
        data: The graph.
        target: The node type to classify.
    """
    others = (kind for kind in data.node_types if kind != target)
    return tuple(
        NodeType(kind, int(data[kind].num_nodes), _num_features(data, kind))
        for kind in (target, *others)
    )


def typed_inputs(
    data: HeteroData, target: str, prepare: Callable[[Tensor], Features]
) -> TypedFeatures:
    """All nodes of a typed graph, for `TypedNodeClassifier`.

    Args:
        data: The graph.
        target: The node type to classify.
        prepare: Called with the features of each type that has some.
    """
    kinds = node_types_of(data, target)
    inputs = (
        prepare(data[kind.name].x) if kind.num_features else None for kind in kinds
    )
    return TypedFeatures(tuple(inputs), kinds[0].num_nodes)


def union_edges(data: HeteroData, target: str) -> tuple[Tensor, int]:
    """The edges of all types between all nodes, [2, E], and the number of nodes.

    Args:
        data: The graph.
        target: The node type to classify, whose nodes come first.
    """
    start, offsets = 0, {}
    for kind in node_types_of(data, target):
        offsets[kind.name] = start
        start += kind.num_nodes
    dtype = torch.int32 if start < 2**31 else torch.int64
    count = sum(int(store.edge_index.size(1)) for store in data.edge_stores)
    # Written in place: the edges are the largest thing in memory here.
    edges, done = torch.empty(2, count, dtype=dtype), 0
    for (source, _, end), store in zip(data.edge_types, data.edge_stores, strict=True):
        ends = store.edge_index
        part = edges[:, done : done + ends.size(1)]
        torch.add(ends[0].to(dtype), offsets[source], out=part[0])
        torch.add(ends[1].to(dtype), offsets[end], out=part[1])
        done += ends.size(1)
    return edges, start


def _num_features(data: HeteroData, kind: str) -> int:
    x = data[kind].get("x")
    return 0 if x is None else int(x.size(1))
