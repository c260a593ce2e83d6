"""Scores of predictions, as fractions. Every function works under vmap.

No value is read back to the host, so that a training step with its scores can be
captured as a CUDA graph.
"""

from __future__ import annotations

import torch
from torch import Tensor


def accuracy(predicted: Tensor, labels: Tensor, num_classes: int = 0) -> Tensor:
    """Share of nodes whose predicted class is right, float64.

    Args:
        predicted: The predicted class of each node, [N].
        labels: Its true class, [N].
        num_classes: Accepted as by `macro_f1`, and not used.
    """
    return (predicted == labels).sum().double() / labels.numel()


def macro_f1(predicted: Tensor, labels: Tensor, num_classes: int) -> Tensor:
    """Mean of the classes' F1, float64: scikit-learn's f1_score(average="macro").

    A class that is neither among the labels nor predicted is left out of the mean; one
    that is predicted but not among the labels counts with an F1 of 0.
    """
    counts = confusion_counts(predicted, labels, num_classes)
    # true + predicted = 2 TP + FN + FP
    occurrences = counts.sum(0) + counts.sum(1)
    f1 = 2 * counts.diagonal() / occurrences.clamp(min=1).double()
    return f1.sum() / (occurrences > 0).sum()


def roc_auc(ranking: Tensor, labels: Tensor) -> Tensor:
    """Area under the ROC curve, float64: scikit-learn's roc_auc_score.

    With two classes it is that of the ranking by class 1. With more it is the mean
    over the classes of each against the rest ("macro", "ovr"); a class without nodes
    among the labels is left out of the mean.

    Args:
        ranking: The probability of every class for each node, or what ranks nodes
            alike, [N, classes].
        labels: The true class of each node, [N]; at least two classes occur.
    """
    ranked = _Ranked(ranking, labels)
    # A negative is outranked by the positives above it, and half by those of its tie.
    above = (ranked.hits_before_tie + ranked.hits_to_tie_end).double() / 2
    area = (above * ~ranked.is_hit).sum(0)
    pairs = ranked.positives * (labels.numel() - ranked.positives)
    return _mean_over_classes(area / pairs.clamp(min=1), pairs > 0, ranking)


def average_precision(ranking: Tensor, labels: Tensor) -> Tensor:
    """Average precision, float64: scikit-learn's average_precision_score.

    Of two classes it is that of class 1, of more the mean over those among the labels.
    The arguments are those of `roc_auc`.
    """
    ranked = _Ranked(ranking, labels)
    precision = ranked.hits_to_tie_end / (ranked.tie_end + 1).double()
    area = (precision * ranked.is_hit).sum(0)
    positives = ranked.positives
    return _mean_over_classes(area / positives.clamp(min=1), positives > 0, ranking)


class _Ranked:
    """Nodes in falling order of each class's ranking; nodes of equal rank are tied.

    Attributes:
        is_hit: Whether the node is of the class, [N, classes].
        positives: Nodes of the class, [classes].
        tie_end: Position of the last node of each node's tie.
        hits_to_tie_end: Nodes of the class up to there.
        hits_before_tie: Nodes of the class before the tie.
    """

    def __init__(self, ranking: Tensor, labels: Tensor) -> None:
        classes = torch.arange(ranking.size(1), device=labels.device)
        sorted_values, order = ranking.sort(dim=0, descending=True)
        is_class = labels.unsqueeze(1) == classes
        self.is_hit = is_class.gather(0, order)
        hits = self.is_hit.cumsum(0)
        self.positives = hits[-1]
        count = labels.numel()
        position = torch.arange(count, device=labels.device).unsqueeze(1)
        changes = sorted_values[1:] != sorted_values[:-1]
        edge = torch.ones_like(self.is_hit[:1])
        first, last = torch.cat([edge, changes]), torch.cat([changes, edge])
        starts = torch.where(first, position, 0).cummax(0).values
        ends = torch.where(last, position, count).flip(0).cummin(0).values.flip(0)
        self.tie_end = ends
        self.hits_to_tie_end = hits.gather(0, ends)
        before = hits.gather(0, (starts - 1).clamp(min=0))
        self.hits_before_tie = torch.where(starts > 0, before, 0)


def _mean_over_classes(scores: Tensor, counted: Tensor, ranking: Tensor) -> Tensor:
    """The score of class 1 of two; of more classes the mean of those that count.

    NaN where the ranking has one.
    """
    if scores.size(0) == 2:
        score = scores[1].double()
    else:
        score = (scores.double() * counted).sum() / counted.sum()
    return torch.where(ranking.isnan().any(), torch.nan, score)


def log_odds(logits: Tensor) -> Tensor:
    """The log-odds of every class, float64, [num_nodes, classes].

    They rank nodes as exact probabilities do. Those of float32, and sums of float64,
    would be 1 for every node that a model is sure of.
    """
    # Equal differences of logits stay equal, so that ties do.
    shifted = logits.double() - logits.double().amax(dim=-1, keepdim=True)
    classes = torch.arange(logits.size(-1), device=logits.device)
    is_top = classes == logits.argmax(dim=-1, keepdim=True)
    total = shifted.logsumexp(dim=-1, keepdim=True)
    beside_top = shifted.masked_fill(is_top, -torch.inf).logsumexp(-1, keepdim=True)
    others = total + torch.log1p(-(shifted - total).exp())
    return shifted - torch.where(is_top, beside_top, others)


def has_several_classes(labels: Tensor) -> bool:
    """Whether labels are of two or more classes. Waits for the device."""
    return bool((labels != labels[0]).any())


def confusion_counts(predicted: Tensor, labels: Tensor, num_classes: int) -> Tensor:
    """Nodes by true class (rows) and predicted class (columns), int64."""
    cells = labels * num_classes + predicted
    counts = torch.zeros(num_classes**2, dtype=torch.int64, device=labels.device)
    counts = counts.scatter_add(0, cells, torch.ones_like(cells))
    return counts.view(num_classes, num_classes)


def balanced_weights(labels: Tensor, num_classes: int) -> Tensor:
    """Weights that give every class of the labels the same total, float32, [classes].

    As scikit-learn's "balanced": the number of labels over the number of classes among
    them times the class's own. A class without labels has the weight 1.
    """
    counts = torch.bincount(labels, minlength=num_classes)
    weights = labels.numel() / ((counts > 0).sum() * counts.clamp(min=1)).double()
    return torch.where(counts > 0, weights, 1.0).float()
