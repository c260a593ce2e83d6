"""Sampled training on typed graphs.

A batch of a typed graph becomes one graph of a single type whose first nodes are the
seeds. Learned vectors of nodes have sparse gradients, so that a step costs the time of
the nodes in its batch, whatever the size of the tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import HeteroData

from tempergat.data import Dataset
from tempergat.nn import Features, NodeType, TypedFeatures, TypedNodeClassifier
from tempergat.ops import tensor_cache
from tempergat.sampling import NeighborSampler, NodeFeatures, Topology
from tempergat.training.sampled.group import SampledGroup
from tempergat.training.sampled.layerwise import OnLayer, infer_layerwise
from tempergat.training.sampled.task import (
    BatchInputs,
    SampledTask,
    near,
    once_per_graph,
)
from tempergat.training.settings.config import RunConfig
from tempergat.training.task import (
    in_channels_of,
    prepared_features,
    row_transform,
    targets_of,
)
from tempergat.training.typed.union import node_types_of, union_edges

# Nodes whose vectors in the shared space are computed at once.
_CHUNK = 2**16


@dataclass(frozen=True)
class TypedSampledTask(SampledTask):
    """What sampled training on a typed graph reads.

    `features` are those of the target type, `edge_index` and `topology` have the edges
    of all types between all nodes, as `union_edges` makes them.

    Attributes:
        data: The node types with their features, and the edge types.
        target: The node type to classify.
        topologies: The edges of each type, grouped by target.
        sparse: The features of node types whose features are sparse, on the device.
    """

    data: HeteroData = field(default_factory=HeteroData)
    target: str = ""
    topologies: dict[tuple[str, str, str], Topology] = field(default_factory=dict)
    sparse: dict[str, Features] = field(default_factory=dict)

    def sampler(self, seeds: Tensor, *arguments: Any, **options: Any) -> Any:
        """As `SampledTask.sampler`; the seeds are nodes of the target type."""
        fanout, batch_size, seed = arguments
        training = options.pop("training")
        return NeighborSampler(
            self.data,
            fanout,
            batch_size,
            (self.target, seeds),
            shuffle=training,
            seed=seed,
            training=training,
            topology=self.topologies,
            **options,
        )

    def inputs(self, batch: Any, labels: Tensor) -> BatchInputs:
        """As `SampledTask.inputs`."""
        graph = batch.graph
        if graph.source.device != self.device:
            graph = graph.to(self.device, non_blocking=True)
        store = batch[self.target]
        chosen = labels[store.input_id.to(labels.device)]
        x = batch_inputs(batch, self.node_types or (), self.device)
        edges = torch.stack([graph.source, graph.target])
        return BatchInputs(x, graph, edges, {}, chosen)


def batch_inputs(
    batch: HeteroData, node_types: tuple[NodeType, ...], device: torch.device
) -> TypedFeatures:
    """The nodes of a typed batch, for `TypedNodeClassifier` with ``batch.graph``.

    Args:
        batch: A batch of `NeighborSampler` on a typed graph.
        node_types: The node types of the model; the first is that of the seeds.
        device: Where the model is.
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


class TypedSampledGroup(SampledGroup):
    """One run on sampled batches of a typed graph; as `SampledGroup`."""

    task: TypedSampledTask
    model: TypedNodeClassifier

    def __init__(self, task: TypedSampledTask, config: RunConfig, seed: int) -> None:
        super().__init__(task, config, seed)
        for table in self.model.tables:
            table.sparse = True  # type: ignore[assignment]
        self.tables = tuple(
            name for name in self.parameters if name.startswith("tables.")
        )

    def _exact_logits(self, on_layer: OnLayer | None = None) -> Tensor:
        h = infer_layerwise(
            self.model,
            self._shared_inputs(),
            self.task.topology,
            # The nodes of the target type come first in the graph of all types.
            nodes=self._parts.nodes,
            on_layer=on_layer,
        )
        return self.model.classify(h)

    def _shared_inputs(self) -> Tensor:
        """All nodes of the graph in the shared space."""
        task, model = self.task, self.model
        found = torch.empty(task.num_nodes, task.in_channels, device=task.device)
        start = 0
        for number, kind in enumerate(model.node_types):
            for begin, values in self._inputs_of(kind):
                part = model.shared_rows(number, values)
                found[start + begin : start + begin + part.size(0)] = part
            start += kind.num_nodes
        return found

    def _inputs_of(self, kind: NodeType) -> Iterator[tuple[int, Features]]:
        """The inputs of a type's nodes, some at a time, with the first one's number."""
        task = self.task
        if kind.name in task.sparse:
            yield 0, task.sparse[kind.name]
            return
        for begin in range(0, kind.num_nodes, _CHUNK):
            nodes = torch.arange(begin, min(begin + _CHUNK, kind.num_nodes))
            if kind.num_features:
                yield begin, task.data[kind.name].x.rows(nodes).to(task.device)
            else:
                yield begin, nodes.to(task.device)


def typed_task_of(
    dataset: Dataset, config: RunConfig, device: torch.device
) -> TypedSampledTask:
    """Prepares a typed graph for sampled training.

    Raises:
        UserError: The graph or the settings do not allow it, as for full training.
    """
    nodes, labels, metric, class_weights = targets_of(dataset, config)
    source, target = dataset.data, str(dataset.target)
    kinds = node_types_of(source, target)
    data, topologies, sparse = HeteroData(), {}, {}
    # In the order of the graph, on which the draws depend.
    for name in source.node_types:
        data[name].num_nodes = int(source[name].num_nodes)
        if source[name].get("x") is not None and source[name].x.size(1):
            x, scale = source[name].x, dataset.scaling.get(f"{name}.x")
            transform = row_transform(config, scale, device)
            data[name].x = NodeFeatures(x, transform=transform).near(device)
            if x.layout == torch.sparse_csr:
                # A batch has dense rows; all nodes at once have no room for them.
                sparse[name] = prepared_features(x, config, device, scale)
    for kind in source.edge_types:
        edges = source[kind].edge_index
        data[kind].edge_index = edges
        sizes = (data[kind[0]].num_nodes, data[kind[2]].num_nodes)
        topologies[kind] = once_per_graph(edges, sizes)
    on_device = {kind: near(found, device) for kind, found in topologies.items()}
    if all(found.device.type == device.type for found in on_device.values()):
        topologies = on_device
    union = _union_edges(source, target)
    if class_weights is not None:
        class_weights = class_weights.to(device)
    return TypedSampledTask(
        features=data[target].get("x"),
        topology=near(
            once_per_graph(union, sum(kind.num_nodes for kind in kinds)), device
        ),
        edge_index=union,
        nodes=nodes,
        labels={split: found.to(device) for split, found in labels.items()},
        in_channels=in_channels_of(dataset, config),
        num_classes=dataset.num_classes,
        metric=metric,
        class_weights=class_weights,
        device=device,
        node_types=kinds,
        data=data,
        target=target,
        topologies=topologies,
        sparse=sparse,
    )


def _union_edges(data: HeteroData, target: str) -> Tensor:
    """The edges of all types, once for all runs on a graph."""
    first = data[data.edge_types[0]].edge_index
    edges: Tensor = tensor_cache.get(
        first, ("union", target), lambda: union_edges(data, target)
    )
    return edges
