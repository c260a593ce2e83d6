"""Scores of predictions, as fractions. Every function works under vmap."""

from collections.abc import Callable

import torch
from torch import Tensor


def accuracy(predicted: Tensor, labels: Tensor) -> Tensor:
    """Share of nodes whose predicted class is right, float64."""
    return (predicted == labels).sum().double() / labels.numel()


def micro_f1(predicted: Tensor, labels: Tensor) -> Tensor:
    """F1 over all classes pooled, float64.

    With exactly one class per node, every wrong prediction is one false positive and
    one false negative, and the score equals accuracy.
    """
    hits = (predicted == labels).sum().double()
    misses = (predicted != labels).sum().double()
    return 2 * hits / (2 * hits + misses + misses)


METRICS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "accuracy": accuracy,
    "micro_f1": micro_f1,
}


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean cross-entropy."""
    return torch.nn.functional.cross_entropy(logits, labels)
