"""What runs are trained on: batches, and the whole graph as that of every epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from tempergat.data import Dataset
from tempergat.nn import NodeClassifier, TypedFeatures
from tempergat.training.graphs.inputs import edge_inputs_of, features_of, graph_of
from tempergat.training.settings.config import RunConfig
from tempergat.training.tasks import NodeClasses

if TYPE_CHECKING:
    from tempergat.training.preparation import Preparation


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
        x_is_fresh: Whether the features were made for this batch alone.
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
    x_is_fresh: bool = False
    share: Tensor | float | None = None
    share_of_rows: float = 1.0


class WholeGraph:
    """The whole graph as the only batch of every epoch, which is its `example` too.

    Attributes:
        batch: The batch.
        judged: What the class scores of all nodes are judged by.
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
        self.judged = task.examples.in_rows()
        self.batch = self.example = Batch(
            x if own is None else own,
            graph_of(dataset, config, task.device),
            self.judged.targets["train"],
            edge_index,
            edge_inputs_of(dataset, config, task.device),
            rows=self.judged.rows["train"],
            x_by_run=own is not None,
        )

    def __len__(self) -> int:
        return 1

    def logits(self, runs: Any) -> Any:
        """Class scores of all nodes in evaluation, for each run."""
        return runs.logits(self.batch)

    def gate_means(self, runs: Any) -> Tensor:
        """The mean gate of each layer that has one, over all nodes, [runs, layers]."""

        def take(model: NodeClassifier) -> Tensor:
            convs: Any = model.convs
            gated = [conv for conv in convs if conv.gate is not None]
            return torch.stack([conv.gates.take_mean() for conv in gated])

        means: Tensor = runs.observe(self.batch, take, records_gates=True)
        return means
