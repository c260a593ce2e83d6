"""A dataset prepared for sampled training: checked, and ready to make batches of.

Nothing here reads the features of all nodes, so they may be mapped from a file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from tempergat.data import Dataset
from tempergat.ops import tensor_cache
from tempergat.sampling import LayerGraphs, NeighborSampler, NodeFeatures, Topology
from tempergat.training.settings.config import RunConfig
from tempergat.training.task import (
    LearningTask,
    edge_inputs_of,
    row_transform,
    targets_of,
)

# The draws of an evaluation have this in the place of an epoch, whatever epoch it
# follows: equal weights always get equal scores.
EVALUATION = 2**32
# Edges on a GPU may take this share of its free memory; beyond it, batches are drawn
# on the CPU.
_SHARE = 0.5


@dataclass(frozen=True)
class BatchInputs:
    """What a model is called with for one batch.

    Attributes:
        x: The nodes' features.
        graph: The edges of each layer, as ``batch.graph``.
        edge_index: The edges as a plain tensor, for a user's own module.
        edge_inputs: Edge features and weights by the name of their argument.
        labels: The classes of the seeds.
    """

    x: Any
    graph: Any
    edge_index: Tensor
    edge_inputs: dict[str, Tensor]
    labels: Tensor

    @property
    def num_seeds(self) -> int:
        """Number of seeds; their scores are the first rows of the output."""
        return self.labels.size(0)


@dataclass(frozen=True, kw_only=True)
class SampledTask(LearningTask):
    """What sampled training reads.

    Attributes:
        features: Features of all nodes.
        topology: The edges, grouped by target.
        edge_index: The edges as they were given.
    """

    features: NodeFeatures
    topology: Topology
    edge_index: Tensor

    @property
    def num_nodes(self) -> int:
        """Number of nodes in the graph."""
        return self.topology.num_dst

    def sampler(
        self,
        seeds: Tensor,
        fanout: tuple[int, ...],
        batch_size: int,
        seed: int,
        *,
        training: bool,
        rank: int = 0,
        world_size: int = 1,
    ) -> NeighborSampler:
        """A loader of batches.

        Args:
            seeds: The nodes to make batches of.
            fanout: Neighbours per hop.
            batch_size: Seeds per batch and rank.
            seed: The seed of all draws.
            training: Whether for training, with another order in every epoch.
            rank: Which of several processes this is.
            world_size: Number of these processes.
        """
        data = Data(x=self.features, num_nodes=self.num_nodes)
        return NeighborSampler(
            data,
            fanout,
            batch_size,
            seeds,
            shuffle=training,
            seed=seed,
            training=training,
            rank=rank,
            world_size=world_size,
            topology=self.topology,
        )

    def inputs(self, batch: Any, labels: Tensor) -> BatchInputs:
        """What a model is called with for a batch.

        Args:
            batch: A batch of a `sampler`, or one with its fields that was made
                elsewhere.
            labels: The classes of all seeds of the sampler.
        """
        graph = LayerGraphs.of_batch(batch)
        edge_inputs = {
            name: graph.in_edge_order(value[batch.e_id.to(value.device)]).to(
                self.device
            )
            for name, value in self.edge_inputs.items()
        }
        edge_index = graph.in_edge_order(batch.edge_index.t()).t().to(self.device)
        if graph.source.device != self.device:
            graph = graph.to(self.device, non_blocking=True)
        chosen = labels[batch.input_id.to(labels.device)]
        x = batch.x.to(self.device, non_blocking=True)
        return BatchInputs(x, graph, edge_index, edge_inputs, chosen)


def sampled_task_of(
    dataset: Dataset, config: RunConfig, device: torch.device
) -> SampledTask:
    """Prepares a dataset for sampled training.

    Raises:
        UserError: The graph or the settings do not allow it, as for full training.
    """
    nodes, labels, metric, class_weights = targets_of(dataset, config)
    data = dataset.data
    features, topology = parts_of(dataset, config, device)
    if class_weights is not None:
        class_weights = class_weights.to(device)
    return SampledTask(
        features=features,
        topology=topology,
        edge_index=data.edge_index,
        nodes=nodes,
        labels={split: found.to(device) for split, found in labels.items()},
        in_channels=int(data.x.size(1)),
        num_classes=dataset.num_classes,
        metric=metric,
        class_weights=class_weights,
        device=device,
        edge_inputs=edge_inputs_of(dataset, config, torch.device("cpu")),
    )


def parts_of(
    dataset: Dataset, config: RunConfig, device: torch.device
) -> tuple[NodeFeatures, Topology]:
    """The features and the edges of a graph, on the device where it has room."""
    transform = row_transform(config, dataset.scaling.get(".x"), device)
    features = NodeFeatures(dataset.data.x, transform=transform).near(device)
    data = dataset.data
    topology = once_per_graph(data.edge_index, int(data.num_nodes))
    return features, near(topology, device)


def once_per_graph(
    edges: Tensor,
    size: int | tuple[int, int],
    make: Callable[[], Topology] | None = None,
) -> Topology:
    """The edges grouped by target, once for all runs on a graph.

    Args:
        edges: The edges.
        size: Number of nodes, or of sources and of targets.
        make: Groups them, or opens files where that was done; it is called the first
            time.
    """

    def build() -> Topology:
        return Topology.of(edges, size)

    topology: Topology = tensor_cache.get(edges, ("topology", size), make or build)
    return topology


def near(topology: Topology, device: torch.device) -> Topology:
    """The edges on a GPU, if it has room for them."""
    if device.type != "cuda":
        return topology
    free, _ = torch.cuda.mem_get_info(device)
    tensors = (topology.pointer, topology.source, topology.edge_id)
    size = sum(t.numel() * t.element_size() for t in tensors if t is not None)
    return topology.to(device) if size <= _SHARE * free else topology
