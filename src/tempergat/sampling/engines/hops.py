"""What a sampled batch is.

Every engine gives the same batch, bit for bit; `reference.py` is the specification.

A hop expands the nodes that were new in the hop before, so every node's neighbours are
drawn once. Nodes: the seeds in their order, then for each hop its new nodes, ascending.
Edges: hop by hop, by target, and by their place in the topology; so all edges are
sorted by target. Sources and targets are the nodes' places in ``n_id``.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

EdgeType = tuple[str, str, str]


class SampledHops(NamedTuple):
    """The sampled neighbourhood of a batch of seeds.

    Attributes:
        n_id: The nodes' numbers in the whole graph, int64.
        source: Place in ``n_id`` of each edge's source, int32.
        target: Place in ``n_id`` of each edge's target, int32, ascending.
        pointer: Where the edges of each target begin and end, int32. Its targets are
            the nodes of all hops but the last, which are not expanded.
        slot: Each edge's slot in the topology, int64.
        nodes_per_hop: Number of seeds, then of new nodes in each hop.
        edges_per_hop: Number of edges in each hop.
    """

    n_id: Tensor
    source: Tensor
    target: Tensor
    pointer: Tensor
    slot: Tensor
    nodes_per_hop: list[int]
    edges_per_hop: list[int]


class TypedHops(NamedTuple):
    """The sampled neighbourhood in a typed graph; see `SampledHops`.

    The places of sources and targets are those within their node type.
    """

    n_id: dict[str, Tensor]
    source: dict[EdgeType, Tensor]
    target: dict[EdgeType, Tensor]
    slot: dict[EdgeType, Tensor]
    nodes_per_hop: dict[str, list[int]]
    edges_per_hop: dict[EdgeType, list[int]]
