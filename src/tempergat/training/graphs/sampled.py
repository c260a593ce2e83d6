"""A graph that batches are drawn from.

Nothing here reads the features of all nodes, so they may be mapped from a file. A batch
of a typed graph becomes one graph of a single type whose first nodes are the seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from tempergat.data import Dataset
from tempergat.nn import Features, NodeType, TypedFeatures, TypedNodeClassifier
from tempergat.ops import tensor_cache
from tempergat.sampling import LayerGraphs, NodeFeatures, Topology
from tempergat.training.graphs.batches import Batch
from tempergat.training.graphs.inputs import (
    edge_inputs_of,
    in_channels_of,
    prepared_features,
    row_transform,
    types_of,
    union_edges,
)
from tempergat.training.settings.config import RunConfig

# Edges on a GPU may take this share of its free memory; beyond it, batches are drawn
# on the CPU.
_SHARE = 0.5
# Nodes whose vectors in the shared space are computed at once.
_CHUNK = 2**16


@dataclass(frozen=True, kw_only=True)
class SampledGraph:
    """What batches are made of.

    Attributes:
        data: The features of all nodes as `NodeFeatures`; by type for a typed graph.
        topology: The edges, grouped by target; those of all types between all nodes,
            as `union_edges` makes them, for a typed graph.
        edge_index: The same edges as they were given.
        in_channels: Features per node; those of the shared space of a typed graph.
        device: Where models are trained.
        edge_inputs: Edge features and weights by the name of their argument.
        target: The node type to classify; None for a graph without types.
        node_types: The node types, the one to classify first; None likewise.
        topologies: The edges of each type, grouped by target.
        sparse: The features of node types whose features are sparse, on the device.
    """

    data: Data | HeteroData
    topology: Topology
    edge_index: Tensor
    in_channels: int
    device: torch.device
    edge_inputs: dict[str, Tensor] = field(default_factory=dict)
    target: str | None = None
    node_types: tuple[NodeType, ...] | None = None
    topologies: dict[tuple[str, str, str], Topology] = field(default_factory=dict)
    sparse: dict[str, Features] = field(default_factory=dict)

    @property
    def num_nodes(self) -> int:
        """Number of nodes in the graph."""
        return self.topology.num_dst

    @property
    def features(self) -> NodeFeatures:
        """The features of all nodes of a graph without types."""
        features: NodeFeatures = self.data.x
        return features

    def batch_of(self, drawn: Any, labels: Tensor) -> Batch:
        """What a model is called with for a batch.

        Args:
            drawn: A batch of a `NeighborSampler`, or one with its fields that was made
                elsewhere.
            labels: The classes of all seeds of the sampler.
        """
        device = self.device
        edge_index, edge_inputs = None, {}
        if self.target is None:
            graph = LayerGraphs.of_batch(drawn)
            for name, value in self.edge_inputs.items():
                chosen = value[drawn.e_id.to(value.device)]
                edge_inputs[name] = graph.in_edge_order(chosen).to(device)
            edge_index = graph.in_edge_order(drawn.edge_index.t()).t().to(device)
            x = drawn.x.to(device, non_blocking=True)
            seeds = drawn.input_id
        else:
            graph = drawn.graph
            x = batch_inputs(drawn, self.node_types or (), device)
            seeds = drawn[self.target].input_id
        if graph.source.device != device:
            graph = graph.to(device, non_blocking=True)
        labels = labels[seeds.to(labels.device)]
        return Batch(x, graph, labels, edge_index, edge_inputs, x_is_fresh=True)

    def first_inputs(self, model: TypedNodeClassifier) -> NodeFeatures | Tensor:
        """What the first layer gets for all nodes; typed, in the shared space."""
        if self.target is None:
            return self.features
        size, dtype = (self.num_nodes, self.in_channels), torch.float32
        shared = torch.empty(size, dtype=dtype, device=self.device)
        start = 0
        for number, kind in enumerate(model.node_types):
            for begin, values in self._inputs_of(kind):
                part = model.shared_rows(number, values)
                shared[start + begin : start + begin + part.size(0)] = part
            start += kind.num_nodes
        return shared

    def _inputs_of(self, kind: NodeType) -> Iterator[tuple[int, Features]]:
        """The inputs of a type's nodes, some at a time, with the first one's number."""
        if kind.name in self.sparse:
            yield 0, self.sparse[kind.name]
            return
        for begin in range(0, kind.num_nodes, _CHUNK):
            nodes = torch.arange(begin, min(begin + _CHUNK, kind.num_nodes))
            if kind.num_features:
                yield begin, self.data[kind.name].x.rows(nodes).to(self.device)
            else:
                yield begin, nodes.to(self.device)


def batch_inputs(
    batch: HeteroData, node_types: tuple[NodeType, ...], device: torch.device
) -> TypedFeatures:
    """The nodes of a typed batch, for `TypedNodeClassifier` with ``batch.graph``.

    Args:
        node_types: The node types of the model; the first is that of the seeds.
    """
    inputs: list[Features] = []
    rows = []
    for kind in node_types:
        store = batch[kind.name]
        values = store.x if kind.num_features else store.n_id
        inputs.append(values.to(device, non_blocking=True))
        rows.append(batch.graph.rows_of_type[kind.name])
    row = torch.cat(rows).to(device)
    order = torch.empty_like(row)
    order[row] = torch.arange(row.size(0), device=device)
    seeds = int(batch[node_types[0].name].batch_size)
    return TypedFeatures(tuple(inputs), seeds, order)


def sampled_graph(
    dataset: Dataset, config: RunConfig, device: torch.device
) -> SampledGraph:
    """Prepares a dataset for sampled training.

    Raises:
        UserError: A weight of an edge is negative.
    """
    if dataset.target is not None:
        return _typed_graph(dataset, config, device)
    features, topology = parts_of(dataset, config, device)
    return SampledGraph(
        data=Data(x=features, num_nodes=topology.num_dst),
        topology=topology,
        edge_index=dataset.data.edge_index,
        in_channels=in_channels_of(dataset, config),
        device=device,
        edge_inputs=edge_inputs_of(dataset, config, torch.device("cpu")),
    )


def _typed_graph(
    dataset: Dataset, config: RunConfig, device: torch.device
) -> SampledGraph:
    source, target = dataset.data, str(dataset.target)
    data, topologies, sparse = HeteroData(), {}, {}
    # In the order of the graph, on which the draws depend.
    for name in source.node_types:
        data[name].num_nodes = int(source[name].num_nodes)
        if source[name].get("x") is not None and source[name].x.size(1):
            x, scaling = source[name].x, dataset.scaling
            transform = row_transform(config, scaling, device, name)
            data[name].x = NodeFeatures(x, transform=transform).near(device)
            if x.layout == torch.sparse_csr:
                # A batch has dense rows; all nodes at once have no room for them.
                sparse[name] = prepared_features(x, config, device, scaling, name)
    for kind in source.edge_types:
        edges = source[kind].edge_index
        data[kind].edge_index = edges
        sizes = (data[kind[0]].num_nodes, data[kind[2]].num_nodes)
        topologies[kind] = once_per_graph(edges, sizes)
    on_device = {kind: _near(edges, device) for kind, edges in topologies.items()}
    if all(edges.device.type == device.type for edges in on_device.values()):
        topologies = on_device
    # The edges of all types, once for all runs on a graph.
    union: Tensor = tensor_cache.get(
        source[source.edge_types[0]].edge_index,
        ("union", target),
        lambda: union_edges(source, target),
    )
    topology = once_per_graph(union, int(source.num_nodes))
    return SampledGraph(
        data=data,
        topology=_near(topology, device),
        edge_index=union,
        in_channels=in_channels_of(dataset, config),
        device=device,
        target=target,
        node_types=types_of(dataset),
        topologies=topologies,
        sparse=sparse,
    )


def parts_of(
    dataset: Dataset, config: RunConfig, device: torch.device
) -> tuple[NodeFeatures, Topology]:
    """The features and the edges of a graph, on the device where it has room."""
    data = dataset.data
    transform = row_transform(config, dataset.scaling, device)
    features = NodeFeatures(data.x, transform=transform).near(device)
    topology = once_per_graph(data.edge_index, int(data.num_nodes))
    return features, _near(topology, device)


def once_per_graph(
    edges: Tensor,
    size: int | tuple[int, int],
    make: Callable[[], Topology] | None = None,
) -> Topology:
    """The edges grouped by target, once for all runs on a graph.

    Args:
        size: Number of nodes, or of sources and of targets.
        make: Groups them, or opens files where that was done; it is called the first
            time.
    """
    make = make or (lambda: Topology.of(edges, size))
    topology: Topology = tensor_cache.get(edges, ("topology", size), make)
    return topology


def _near(topology: Topology, device: torch.device) -> Topology:
    """The edges on a GPU, if it has room for them."""
    if device.type != "cuda":
        return topology
    free, _ = torch.cuda.mem_get_info(device)
    tensors = (topology.pointer, topology.source, topology.edge_id)
    size = sum(t.numel() * t.element_size() for t in tensors if t is not None)
    return topology.to(device) if size <= _SHARE * free else topology
