"""The metrics: how a score is computed, which of two is better, how it is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from tempergat.training.evaluate import (
    accuracy,
    average_precision,
    log_odds,
    macro_f1,
    roc_auc,
)


@dataclass(frozen=True, eq=False)
class Metric:
    """A score of predictions.

    Runs keep scores as they are computed. People see them times a factor, in a unit.

    Attributes:
        name: What settings and files call it.
        words: What people call it.
        outputs: Turns class scores into what is judged: predicted classes, or ranks.
        compute: The score, from what is judged, the targets and the number of classes.
        constant: The score of one class as the answer for every example, from the
            number of examples of each class and the number of that class.
        better: Whether the higher or the lower of two scores is the better one.
        factor: What a score is multiplied by to be shown.
        unit: The unit of a shown score: after a number, and in words.
        points: The unit of a difference.
        least: Reports may say that no method is better by this much; None to never say
            so.
        bounds: The least and the largest score, as shown.
        digits: How many decimals are shown.
        is_share: Whether a score is the share of examples that are right, whose error
            from the choice of examples is that of a binomial distribution.
        ranks: Whether examples of different classes are ranked; two must occur.
    """

    name: str
    words: str
    outputs: Callable[[Tensor], Tensor]
    compute: Callable[[Tensor, Tensor, int], Tensor]
    constant: Callable[[Sequence[int], int], float]
    better: Literal["higher", "lower"] = "higher"
    factor: float = 100.0
    unit: tuple[str, str] = ("%", "percent")
    points: str = "points"
    least: float | None = 1.0
    bounds: tuple[float, float] = (0.0, 100.0)
    digits: int = 2
    is_share: bool = False
    ranks: bool = False

    def shown(self, score: float) -> float:
        """A score as people see it."""
        return self.factor * score

    def text(self, shown: float | None) -> str:
        """A shown score as text; a dash for None."""
        return "-" if shown is None else f"{shown:.{self.digits}f}"

    def with_unit(self, score: float) -> str:
        """A score as people see it, with its unit: `81.35 %`."""
        return f"{self.text(self.shown(score))} {self.unit[0]}".rstrip()

    @property
    def best(self) -> str:
        """Where the best score stands: `highest` or `lowest`."""
        return "highest" if self.better == "higher" else "lowest"

    @property
    def in_unit(self) -> str:
        """The words with the unit: `accuracy in percent`."""
        return f"{self.words} in {self.unit[1]}" if self.unit[1] else self.words

    @property
    def axis(self) -> str:
        """The name of an axis: `accuracy (%)`."""
        return f"{self.words} ({self.unit[0]})" if self.unit[0] else self.words

    def merit(self, score: Any) -> Any:
        """A number, or numbers, that are higher for better scores, shown or not."""
        return score if self.better == "higher" else -score


def _of_classes(
    name: str, words: str, compute: Callable[[Tensor, Tensor, int], Tensor], **more: Any
) -> Metric:
    """A metric of the class that is predicted for each example."""

    def predicted(logits: Tensor) -> Tensor:
        return logits.argmax(dim=-1)

    return Metric(name, words, predicted, compute, **more)


def _of_ranking(
    name: str, words: str, compute: Callable[[Tensor, Tensor], Tensor], constant: Any
) -> Metric:
    """A metric of how each class's scores rank the examples."""

    def ranked(ranking: Tensor, labels: Tensor, _: int) -> Tensor:
        return compute(ranking, labels)

    return Metric(name, words, log_odds, ranked, constant, ranks=True)


def _share_of(counts: Sequence[int], label: int) -> float:
    return counts[label] / sum(counts)


def _f1_of(counts: Sequence[int], label: int) -> float:
    classes = sum(count > 0 for count in counts) + (counts[label] == 0)
    return 2 * counts[label] / (sum(counts) + counts[label]) / classes


def _precision_of(counts: Sequence[int], label: int) -> float:
    present = sum(count > 0 for count in counts)
    return counts[1] / sum(counts) if len(counts) == 2 else 1 / present


def _half(counts: Sequence[int], label: int) -> float:
    return 0.5


METRICS = {
    metric.name: metric
    for metric in (
        _of_classes(
            "accuracy", "accuracy", accuracy, constant=_share_of, is_share=True
        ),
        # With one class per node, every wrong prediction is one false positive and one
        # false negative, and F1 over all classes pooled is the accuracy.
        _of_classes(
            "micro_f1", "micro-F1", accuracy, constant=_share_of, is_share=True
        ),
        _of_classes("macro_f1", "macro-F1", macro_f1, constant=_f1_of),
        _of_ranking("roc_auc", "ROC AUC", roc_auc, _half),
        _of_ranking(
            "average_precision", "average precision", average_precision, _precision_of
        ),
    )
}


def metric_of_settings(name: str | None) -> Metric:
    """The metric of runs whose settings have this name.

    None stands for accuracy, and for micro-F1, which is written alike.

    Raises:
        ValueError: There is no such metric.
    """
    if name is not None and name not in METRICS:
        raise ValueError(f"there is no metric {name!r}")
    return METRICS[name or "accuracy"]


def scores_of_parts(
    metric: Metric,
    logits: Tensor,
    nodes: Mapping[str, Tensor],
    labels: Mapping[str, Tensor],
) -> Tensor:
    """The score of one run on each part of the nodes, float64, [parts].

    Args:
        metric: The metric.
        logits: Class scores of all nodes, [num_nodes, classes].
        nodes: The nodes of each part.
        labels: Their classes.
    """
    outputs = metric.outputs(logits)
    scores = [
        metric.compute(outputs.index_select(0, inside), labels[part], logits.size(-1))
        for part, inside in nodes.items()
    ]
    return torch.stack(scores)
