"""Batches of a graph that is too large to be one batch: samples, scores by layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from tempergat.sampling import NeighborSampler
from tempergat.training.graphs.batches import Batch
from tempergat.training.graphs.layerwise import OnLayer, infer_layerwise
from tempergat.training.graphs.sampled import SampledGraph
from tempergat.training.settings.config import RunConfig
from tempergat.training.tasks import NodeClasses

if TYPE_CHECKING:
    from tempergat.training.runs.modules import ModuleRuns

# The draws of an evaluation have this in the place of an epoch, whatever epoch it
# follows: equal weights always get equal scores.
_EVALUATION = 2**32


class LargeGraph:
    """A graph whose nodes are scored layer by layer, or in batches.

    Only one run is trained on it at a time.

    Args:
        config: Settings of the run; they say how it is scored.

    Attributes:
        judged: What the class scores of the nodes of all splits, ascending, are judged
            by.
    """

    def __init__(
        self, graph: SampledGraph, config: RunConfig, task: NodeClasses, seed: int
    ) -> None:
        self.graph = graph
        self.task = task
        self._config = config
        self._seed = seed
        examples = task.examples
        self._nodes = torch.unique(torch.cat(list(examples.numbers.values())))
        self.judged = examples.in_rows(self._nodes)

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
            x_is_fresh=True,
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
        assert self._config.eval_batch_size is not None
        sampler = self._sampler(
            self._nodes, self._config.eval_batch_size, training=False
        )
        sampler.set_epoch(_EVALUATION)
        labels = torch.zeros(self._nodes.size(0), dtype=torch.int64)
        logits = []
        for drawn in sampler:
            batch = self.graph.batch_of(drawn, labels)
            count = batch.labels.size(0)
            logits.append(runs.logits(batch)[0][:count].detach())
            if on_batch is not None:
                on_batch(count)
        return torch.cat(logits)

    def _sampler(
        self, nodes: Tensor, batch_size: int, *, training: bool, **options: Any
    ) -> NeighborSampler:
        """A loader of batches of nodes, those of the target type of a typed graph."""
        graph, fanout = self.graph, self._config.fanout
        assert fanout is not None
        is_typed = graph.target is not None
        return NeighborSampler(
            graph.data,
            fanout,
            batch_size,
            (graph.target, nodes) if is_typed else nodes,
            seed=self._seed,
            shuffle=training,
            training=training,
            topology=graph.topologies if is_typed else graph.topology,
            **options,
        )

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
                sums[number] += convs[number].gates.take_mean() * nodes
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
        assert config.batch_size is not None
        self.sampler = self._sampler(
            task.examples.numbers["train"],
            -(-config.batch_size // world_size),
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
        """What a model is called with for a batch of the sampler, or one like it."""
        return self.graph.batch_of(drawn, self.task.examples.targets["train"])
