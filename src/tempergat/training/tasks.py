"""What is predicted: the classes of nodes, how predictions are trained and judged."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from tempergat.base import UserError
from tempergat.data import Dataset, Question, Target
from tempergat.training.evaluate import (
    balanced_weights,
    confusion_counts,
    has_several_classes,
)
from tempergat.training.examples import SPLIT_WORDS, Examples, Judged, examples_of
from tempergat.training.metrics import METRICS, Metric, scores_of_parts
from tempergat.training.runs.models import State
from tempergat.training.settings.config import RunConfig
from tempergat.training.settings.recipes import metric_of_run

# Ranking metrics sort the nodes once for every class; above this many class scores of a
# run, only the metric that was asked for is worth that.
_MOST_RANKED_SCORES = 2**20


@dataclass(frozen=True, kw_only=True)
class NodeClasses:
    """The task of telling the classes of nodes.

    A task has a loss of some predictions and scores of all of them. Another task needs
    the same attributes and methods.

    Attributes:
        examples: The nodes of each split, and their classes.
        predicted: What is predicted: the classes.
        metric: The metric of the scores.
        class_weights: The weight of each class in the loss; None for equal weights.
        device: Where models are trained.
    """

    examples: Examples
    predicted: Target
    metric: Metric
    class_weights: Tensor | None
    device: torch.device

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The loss of some nodes of one run, their mean cross-entropy, 0-d.

        Args:
            logits: Their class scores, [nodes, classes].
            labels: Their classes, [nodes].
        """
        return F.cross_entropy(logits, labels, self.class_weights)

    def total_weight(self, labels: Tensor) -> Tensor | float:
        """By what the loss of some nodes is divided."""
        if self.class_weights is None:
            return float(labels.numel())
        return self.class_weights[labels].sum()

    def scores(self, logits: Tensor, judged: Judged) -> State:
        """The validation loss of one run, 0-d, and its scores, [splits].

        Args:
            logits: Class scores, [nodes, classes].
            judged: What they should be.
        """
        chosen = logits.index_select(0, judged.rows["val"])
        val_loss = self.loss(chosen, judged.targets["val"]).double()
        scores = scores_of_parts(self.metric, logits, *judged)
        return {"val_loss": val_loss, "scores": scores}

    def evaluation(self, logits: Tensor, judged: Judged) -> State:
        """The confusion matrix of one run, as `confusion`, and its scores by metric.

        The matrix counts test nodes by true class (rows) and predicted class (columns).
        Scores are [splits]. The ranking metrics are left out where a split has nodes of
        one class only, and in large graphs.
        """
        rows, labels = judged
        is_small = logits.numel() <= _MOST_RANKED_SCORES
        ranks = is_small and all(map(has_several_classes, labels.values()))
        metrics = [
            metric
            for name, metric in METRICS.items()
            # It is the accuracy, where each node has one class.
            if name != "micro_f1" and (ranks or not metric.ranks)
        ]
        predicted = logits.argmax(dim=-1).index_select(0, rows["test"])
        return {
            "confusion": confusion_counts(predicted, labels["test"], logits.size(-1)),
            **{m.name: scores_of_parts(m, logits, rows, labels) for m in metrics},
        }


def node_classes(
    dataset: Dataset, config: RunConfig, device: torch.device
) -> NodeClasses:
    """The task of a dataset.

    Raises:
        UserError: A part of the split has no labelled nodes, or only one class where
            the metric needs two.
    """
    examples = examples_of(dataset)
    _refuse_one_class(dataset, examples)
    metric = METRICS[metric_of_run(config, dataset)]
    for split, classes in examples.targets.items() if metric.ranks else ():
        if not has_several_classes(classes):
            raise UserError(
                f"{metric.name} compares classes, but all {classes.numel()} "
                f"{SPLIT_WORDS[split]} nodes of {dataset.name} are of class "
                f"{_name_of(classes[0], dataset)}; choose another metric, like "
                "macro_f1, or another split"
            )
    class_weights = None
    if config.class_weights == "balanced":
        classes = examples.targets["train"]
        weights = balanced_weights(classes, dataset.predicted.width)
        class_weights = weights.to(device)
    return NodeClasses(
        examples=examples.to(device),
        predicted=dataset.predicted,
        metric=metric,
        class_weights=class_weights,
        device=device,
    )


def refuse_other_training(dataset: Dataset, config: RunConfig | None = None) -> None:
    """Refuses a graph that these settings, or any, cannot train on.

    Raises:
        UserError: The graph has no features, or node types with a user's own module.
    """
    if config is not None and config.source_hash is not None:
        refuse_typed(dataset, f"{config.method} is your own module, which")
    if dataset.is_heterogeneous:
        # Types without features get learned vectors.
        return
    if getattr(dataset.data, "x", None) is None:
        raise Question(
            f"{dataset.name} has no node features; add some, or make them from the "
            "edges with --make-features degree (in Python: "
            'ReadOptions(make_features="degree"))',
            make_features="degree",
        )
    if dataset.data.x.size(1) == 0:
        raise UserError(f"{dataset.name} has 0 features per node; give it some")


def refuse_untrainable(dataset: Dataset) -> None:
    """Refuses a graph that no settings can train on, with the words of training.

    Raises:
        UserError: The graph has no features, no nodes in a part of its split, or
            training nodes of one class only.
    """
    refuse_other_training(dataset)
    _refuse_one_class(dataset, examples_of(dataset))


def refuse_typed(dataset: Dataset, what: str) -> None:
    """Refuses a typed graph where only graphs of one type can be used.

    Args:
        dataset: The graph.
        what: What takes graphs of one type only, in words.

    Raises:
        UserError: The graph has node types.
    """
    if dataset.is_heterogeneous:
        raise UserError(
            f"{dataset.name} is a typed graph (HeteroData), and {what} takes graphs "
            "with one type of nodes and edges; if all node types have the same number "
            "of features, give data.to_homogeneous()"
        )


def _refuse_one_class(dataset: Dataset, examples: Examples) -> None:
    labels = examples.targets["train"]
    if dataset.predicted.width < 2 or not has_several_classes(labels):
        raise UserError(
            f"all {labels.numel()} training nodes of {dataset.name} are of "
            f"class {_name_of(labels[0], dataset)}; a classifier needs at least two "
            "classes"
        )


def _name_of(label: Tensor, dataset: Dataset) -> str:
    """What the user calls a class."""
    return dataset.predicted.words[int(label)]
