"""Turns sampled hops into PyG batches, with the fields of `NeighborLoader`'s."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.data.storage import BaseStorage

from tempergat.sampling.engines.hops import EdgeType, SampledHops, TypedHops
from tempergat.sampling.layer_graphs import LayerGraphs
from tempergat.sampling.storage.features import NodeFeatures
from tempergat.sampling.storage.gathering import gather
from tempergat.sampling.storage.topology import Topology


def make_batch(
    data: Data,
    topology: Topology,
    hops: SampledHops,
    input_id: Tensor,
    graph: LayerGraphs,
) -> Data:
    """The batch of a graph without types.

    Args:
        data: The whole graph; its node and edge attributes are gathered.
        topology: Its edges.
        hops: What was sampled.
        input_id: The seeds' places in the list of seeds.
        graph: The layers' graphs.
    """
    batch, store = copy.copy(data), data._store
    e_id = topology.edges_of(hops.slot)
    for key, value in store.items():
        if key in ("edge_index", "num_nodes"):
            continue
        if isinstance(value, NodeFeatures):
            batch[key] = value.rows(hops.n_id)
        elif store.is_node_attr(key):
            batch[key] = _gathered(store, key, value, hops.n_id)
        elif store.is_edge_attr(key):
            batch[key] = _gathered(store, key, value, e_id)
    batch.edge_index = torch.stack([hops.source, hops.target]).long()
    if "num_nodes" in store:
        batch.num_nodes = hops.n_id.size(0)
    if "n_id" not in batch:
        batch.n_id = hops.n_id
    if "e_id" not in batch:
        batch.e_id = e_id
    batch.num_sampled_nodes = hops.nodes_per_hop
    batch.num_sampled_edges = hops.edges_per_hop
    batch.input_id = input_id
    batch.batch_size = input_id.size(0)
    batch.graph = graph
    return batch


def make_typed_batch(
    data: HeteroData,
    topologies: dict[EdgeType, Topology],
    hops: TypedHops,
    seed_type: str,
    input_id: Tensor,
    graph: LayerGraphs,
) -> HeteroData:
    """The batch of a typed graph; see `make_batch`."""
    batch = copy.copy(data)
    for kind in data.node_types:
        store, out, n_id = data[kind], batch[kind], hops.n_id[kind]
        for key, value in store.items():
            if isinstance(value, NodeFeatures):
                out[key] = value.rows(n_id)
            elif key != "num_nodes" and store.is_node_attr(key):
                out[key] = _gathered(store, key, value, n_id)
        if "num_nodes" in store:
            out.num_nodes = n_id.size(0)
        if "n_id" not in out:
            out.n_id = n_id
        out.num_sampled_nodes = hops.nodes_per_hop[kind]
    for kind, topology in topologies.items():
        out, e_id = batch[kind], topology.edges_of(hops.slot[kind])
        # The data has no store for edges that were given grouped.
        if kind in data.edge_types:
            for key, value in data[kind].items():
                if key != "edge_index" and data[kind].is_edge_attr(key):
                    out[key] = _gathered(data[kind], key, value, e_id)
        out.edge_index = torch.stack([hops.source[kind], hops.target[kind]]).long()
        if "e_id" not in out:
            out.e_id = e_id
        out.num_sampled_edges = hops.edges_per_hop[kind]
    batch[seed_type].input_id = input_id
    batch[seed_type].batch_size = input_id.size(0)
    batch.graph = graph
    return batch


def _gathered(store: BaseStorage, key: str, value: Any, index: Tensor) -> Any:
    """The rows of an attribute that belong to a batch."""
    if isinstance(value, Tensor):
        dim = store._parent().__cat_dim__(key, value, store)
        return gather(value, index, dim)
    if isinstance(value, np.ndarray):
        dim = store._parent().__cat_dim__(key, value, store)
        return torch.from_numpy(np.take(value, index.cpu().numpy(), axis=dim))
    if isinstance(value, list | tuple):
        return [value[k] for k in index.tolist()]
    # PyG's TensorFrame.
    return value[index]
