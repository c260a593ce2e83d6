"""What runs are trained on, step by step: the whole graph once, or samples of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from tempergat.data import Dataset
from tempergat.nn import NodeClassifier, TypedFeatures
from tempergat.training.inputs import (
    edge_inputs_of,
    features_of,
    graph_of,
    in_channels_of,
    types_of,
)
from tempergat.training.layerwise import OnLayer, infer_layerwise
from tempergat.training.sampled_graph import SampledGraph
from tempergat.training.settings.config import RunConfig
from tempergat.training.tasks import NodeClasses, Targets

if TYPE_CHECKING:
    from tempergat.training.preparation import Preparation
    from tempergat.training.runs import Logits, ModuleRuns, StackedRuns

# The draws of an evaluation have this in the place of an epoch, whatever epoch it
# follows: equal weights always get equal scores.
_EVALUATION = 2**32


@dataclass(frozen=True)
class Batch:
    """What all runs are called with in a step, and what they should answer.

    Attributes:
        x: The nodes' features.
        graph: The edges, or those of each layer.
        labels: The classes of the nodes that the loss is about.
        edge_index: The edges as a plain tensor, for a user's own module.
        edge_inputs: Edge features and weights by the name of their argument.
        rows: The rows of these nodes in a model's output; None for the first ones.
        x_by_run: Whether every run has features of its own: [runs, nodes, channels].
        share: What the mean loss of these nodes counts in the loss of all processes;
            None where there is one process.
        share_of_rows: Likewise, what the mean gate counts.
    """

    x: Any
    graph: Any
    labels: Tensor
    edge_index: Tensor | None = None
    edge_inputs: dict[str, Tensor] = field(default_factory=dict)
    rows: Tensor | None = None
    x_by_run: bool = False
    share: Tensor | float | None = None
    share_of_rows: float = 1.0


# A batch that all runs share, or one for each.
BatchOfRuns = Batch | list[Batch]


class WholeGraph:
    """The whole graph as the only batch of every epoch.

    Args:
        dataset: The graph.
        config: Settings of the runs.
        task: What is predicted.
        seeds: The seeds of the runs.
        preparation: What is done to their features; None for nothing.

    Attributes:
        batch: The batch.
        targets: What the class scores of all nodes are judged by.
        in_channels: Features per node; those of the shared space of a typed graph.
        edge_dim: Features per edge; None where the method takes none.
        node_types: The node types of a typed graph, the one to classify first.
    """

    is_whole = True

    def __init__(
        self,
        dataset: Dataset,
        config: RunConfig,
        task: NodeClasses,
        seeds: Sequence[int] = (),
        preparation: Preparation | None = None,
    ) -> None:
        x: Any = features_of(dataset, config, task.device)
        own = None
        # A typed graph is refused before.
        if preparation is not None and not isinstance(x, TypedFeatures):
            own = preparation.features_of(x, seeds)
        edge_index = None
        if config.source_hash is not None:
            edge_index = dataset.data.edge_index.long().to(task.device)
        rows = {name: nodes.to(task.device) for name, nodes in task.nodes.items()}
        self.targets = Targets(rows, task.labels)
        self.batch = Batch(
            x if own is None else own,
            graph_of(dataset, config, task.device),
            task.labels["train"],
            edge_index,
            edge_inputs_of(dataset, config, task.device),
            rows=rows["train"],
            x_by_run=own is not None,
        )
        self.in_channels = in_channels_of(dataset, config)
        self.edge_dim = edge_dim_of(self.batch.edge_inputs)
        self.node_types = types_of(dataset)

    def __len__(self) -> int:
        return 1

    @property
    def example(self) -> Batch:
        """A batch that a model can be called with."""
        return self.batch

    def logits(self, runs: Any) -> Logits:
        """Class scores of all nodes in evaluation, for each run."""
        logits: Logits = runs.logits(self.batch)
        return logits

    def gate_means(self, runs: StackedRuns) -> Tensor:
        """The mean gate of each layer that has one, over all nodes, [runs, layers]."""

        def take(model: NodeClassifier) -> Tensor:
            convs: Any = model.convs
            gated = [conv for conv in convs if conv.gate is not None]
            return torch.stack([conv.gate_means.take() for conv in gated])

        return runs.observe(self.batch, take, records_gates=True)


class GraphPerRun:
    """A whole graph for each run, as the only batch of every epoch.

    Args:
        graphs: The graphs; features and classes are of the same number in all.

    Attributes:
        batch: The batch of each run.
        targets: What the class scores of each run are judged by.
    """

    is_whole = True

    def __init__(self, graphs: Sequence[WholeGraph]) -> None:
        self.batch = [graph.batch for graph in graphs]
        self.targets = [graph.targets for graph in graphs]

    def __len__(self) -> int:
        return 1

    def logits(self, runs: Any) -> Logits:
        """Class scores of all nodes in evaluation, for each run."""
        logits: Logits = runs.logits(self.batch)
        return logits


class LargeGraph:
    """A graph whose nodes are scored layer by layer, or in batches.

    Only one run is trained on it at a time.

    Args:
        graph: The graph.
        config: Settings of the run; they say how it is scored.
        task: What is predicted.
        seed: The seed of the run.

    Attributes:
        targets: What the class scores of the nodes of all splits, ascending, are
            judged by.
        in_channels: Features per node; those of the shared space of a typed graph.
        edge_dim: Features per edge; None where the method takes none.
        node_types: The node types of a typed graph, the one to classify first.
    """

    def __init__(
        self, graph: SampledGraph, config: RunConfig, task: NodeClasses, seed: int
    ) -> None:
        self.graph = graph
        self.task = task
        self._config = config
        self._seed = seed
        self._nodes = torch.unique(torch.cat(list(task.nodes.values())))
        rows = {
            split: torch.searchsorted(self._nodes, nodes).to(task.device)
            for split, nodes in task.nodes.items()
        }
        self.targets = Targets(rows, task.labels)
        self.in_channels = graph.in_channels
        self.edge_dim = edge_dim_of(graph.edge_inputs)
        self.node_types = graph.node_types

    @property
    def example(self) -> Batch:
        """A batch of one node that a user's module can be called with."""
        edges = torch.zeros(2, 1, dtype=torch.int64)
        edge_inputs = {
            name: value[:1] for name, value in self.graph.edge_inputs.items()
        }
        return self._plain_batch(1, edges, edge_inputs)

    def _plain_batch(
        self, count: int, edge_index: Tensor, edge_inputs: dict[str, Tensor]
    ) -> Batch:
        """The first nodes of the graph, for a user's module."""
        device = self.task.device
        return Batch(
            self.graph.features.rows(torch.arange(count)),
            None,
            torch.empty(0, dtype=torch.int64),
            edge_index.long().to(device),
            {name: value.to(device) for name, value in edge_inputs.items()},
        )

    def logits(self, runs: ModuleRuns) -> list[Tensor]:
        """Class scores of all nodes of the splits, ascending, for the run."""
        runs.model.eval()
        if self._config.eval_batch_size is not None:
            return [self._sampled_logits(runs)]
        if not runs.is_own:
            return [self._exact_logits(runs.model)]
        graph = self.graph
        whole = self._plain_batch(graph.num_nodes, graph.edge_index, graph.edge_inputs)
        (logits,) = runs.logits(whole)
        return [logits[self._nodes.to(logits.device)]]

    def _exact_logits(self, model: Any, on_layer: OnLayer | None = None) -> Tensor:
        graph = self.graph
        h = infer_layerwise(
            model,
            graph.first_inputs(model),
            graph.topology,
            # The nodes of the target type come first in a typed graph.
            nodes=self._nodes,
            edge_attr=graph.edge_inputs.get("edge_attr"),
            edge_weight=graph.edge_inputs.get("edge_weight"),
            on_layer=on_layer,
        )
        return h if graph.target is None else model.classify(h)

    def _sampled_logits(
        self, runs: ModuleRuns, on_batch: Callable[[int], None] | None = None
    ) -> Tensor:
        """Class scores from batches; the function gets the number of nodes of each."""
        config = self._config
        assert config.fanout is not None
        assert config.eval_batch_size is not None
        sampler = self.graph.sampler(
            self._nodes, config.fanout, config.eval_batch_size, self._seed
        )
        sampler.set_epoch(_EVALUATION)
        labels = torch.zeros(self._nodes.size(0), dtype=torch.int64)
        logits = []
        for drawn in sampler:
            batch = Batch(*self.graph.inputs(drawn, labels))
            count = batch.labels.size(0)
            logits.append(runs.logits(batch)[0][:count].detach())
            if on_batch is not None:
                on_batch(count)
        return torch.cat(logits)

    def gate_means(self, runs: ModuleRuns) -> Tensor:
        """The mean gate of each layer that has one, [1, layers].

        Over all nodes, or, where evaluation is sampled, over those of the batches.
        """
        convs: Any = runs.model.convs
        gated = [number for number, conv in enumerate(convs) if conv.gate is not None]
        sums = torch.zeros(len(convs), dtype=torch.float64, device=self.task.device)
        counts = [0] * len(convs)

        def add(number: int, conv: Any, h: Tensor) -> None:
            if number not in gated:
                return
            gate = conv.gate_values(h)
            sums[number] += gate.double().sum()
            counts[number] += gate.numel()

        def add_batch(nodes: int) -> None:
            for number in gated:
                sums[number] += convs[number].gate_means.take() * nodes
                counts[number] += nodes

        if self._config.eval_batch_size is None:
            self._exact_logits(runs.model, add)
        else:
            # Layers record their mean gates only where gradients are computed.
            with torch.enable_grad():
                self._sampled_logits(runs, add_batch)
        means = (sums / torch.tensor(counts, device=sums.device))[gated].float()
        return means.unsqueeze(0)


class SampledBatches(LargeGraph):
    """Batches of sampled neighbourhoods.

    An epoch goes once over all training nodes, in another order each time. The batches
    depend on the run's seed, the epoch and the step alone.

    Args:
        graph: The graph.
        config: Settings of the run.
        task: What is predicted.
        seed: The seed of the run.
        rank: Which of several processes with equal models this is.
        world_size: Number of these processes. A batch then has `config.batch_size`
            nodes of all of them together.

    Attributes:
        sampler: Draws the batches.
    """

    is_whole = False

    def __init__(
        self,
        graph: SampledGraph,
        config: RunConfig,
        task: NodeClasses,
        seed: int,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        super().__init__(graph, config, task, seed)
        assert config.fanout is not None
        assert config.batch_size is not None
        self.sampler = graph.sampler(
            task.nodes["train"],
            config.fanout,
            -(-config.batch_size // world_size),
            seed,
            training=True,
            rank=rank,
            world_size=world_size,
        )

    def __len__(self) -> int:
        return len(self.sampler)

    def epoch(self, number: int, step: int) -> Iterator[Batch]:
        """The batches of an epoch from a step on."""
        self.sampler.set_epoch(number, step)
        return map(self.batch_of, iter(self.sampler))

    def batch_of(self, drawn: Any) -> Batch:
        """What a model is called with for a batch of the sampler.

        Args:
            drawn: A batch of the sampler, or one with its fields made elsewhere.
        """
        return Batch(*self.graph.inputs(drawn, self.task.labels["train"]))


def edge_dim_of(edge_inputs: dict[str, Tensor]) -> int | None:
    """Features per edge; None without edge features."""
    edge_attr = edge_inputs.get("edge_attr")
    return None if edge_attr is None else edge_attr.size(1)
