"""Turns sampled hops into PyG batches, with the fields of `NeighborLoader`'s."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.data.storage import BaseStorage
from torch_geometric.typing import EdgeType

from tempergat.sampling.features import NodeFeatures, gather
from tempergat.sampling.layer_graphs import LayerGraphs
from tempergat.sampling.reference import SampledHops
from tempergat.sampling.topology import Topology


def make_batch(
    data: Data | HeteroData,
    topologies: Mapping[EdgeType, Topology],
    hops: SampledHops,
    seed_type: str,
    input_id: Tensor,
    graph: LayerGraphs,
) -> Data | HeteroData:
    """The batch of a graph.

    Args:
        data: The whole graph; its node and edge attributes are gathered.
        topologies: Its edges by type; any key will do for a graph without types.
        hops: What was sampled.
        seed_type: The node type of the seeds; not read for a graph without types.
        input_id: The seeds' places in the list of seeds.
        graph: The layers' graphs.
    """
    typed = isinstance(data, HeteroData)
    batch = copy.copy(data)

    def store_of(graph: Any, kind: str | EdgeType) -> Any:
        return graph[kind] if typed else graph._store

    node_types = data.node_types if isinstance(data, HeteroData) else [seed_type]
    for number, kind in enumerate(node_types):
        store, out = store_of(data, kind), store_of(batch, kind)
        n_id = hops.n_id[number]
        for key, value in store.items():
            if isinstance(value, NodeFeatures):
                out[key] = value.rows(n_id)
            elif key not in ("num_nodes", "edge_index") and store.is_node_attr(key):
                out[key] = _gathered(store, key, value, n_id)
        if "num_nodes" in store:
            out.num_nodes = n_id.size(0)
        if "n_id" not in out:
            out.n_id = n_id
        out.num_sampled_nodes = hops.nodes_per_hop[number]
    for number, (edge_type, topology) in enumerate(topologies.items()):
        out, e_id = store_of(batch, edge_type), topology.edges_of(hops.slot[number])
        # A typed graph has no store for edges that were given grouped.
        if not typed or edge_type in data.edge_types:
            store = store_of(data, edge_type)
            for key, value in store.items():
                if key != "edge_index" and store.is_edge_attr(key):
                    out[key] = _gathered(store, key, value, e_id)
        ends = hops.source[number], hops.target[number]
        out.edge_index = torch.stack(ends).long()
        if "e_id" not in out:
            out.e_id = e_id
        out.num_sampled_edges = hops.edges_per_hop[number]
    seeds = store_of(batch, seed_type)
    seeds.input_id, seeds.batch_size = input_id, input_id.size(0)
    batch.graph = graph
    return batch


def _gathered(store: BaseStorage, key: str, value: Any, index: Tensor) -> Any:
    """The rows of an attribute that belong to a batch."""
    if isinstance(value, Tensor | np.ndarray):
        dim = store._parent().__cat_dim__(key, value, store)
        if isinstance(value, Tensor):
            return gather(value, index, dim)
        return torch.from_numpy(np.take(value, index.cpu().numpy(), axis=dim))
    if isinstance(value, list | tuple):
        return [value[k] for k in index.tolist()]
    # PyG's TensorFrame.
    return value[index]
