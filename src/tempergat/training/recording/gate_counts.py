"""How far the gates of each layer are open: counts over all nodes and channels."""

from typing import Any

import torch
from torch import Tensor

from tempergat.nn import AttentionLayer, NodeClassifier
from tempergat.training.seeds import SeedGroup, State

# Equal parts from 0, closed, to 1, open.
BINS = 20

Counts = tuple[tuple[int, ...], ...]


def count_gates(group: Any, state: State) -> list[Counts | None]:
    """For each run and layer, how many gates lie in each part, in evaluation.

    Args:
        group: The runs. Only those that are trained full-batch on a graph without
            node types are counted.
        state: Parameters and buffers, like `Training.best`.

    Returns:
        One entry per run; None for all where the gates are not counted, or where the
        method has none.
    """
    layers = _gated_layers(group) if isinstance(group, SeedGroup) else []
    if not layers:
        return [None] * len(group.seeds)
    found: list[Tensor] = []

    def count(layer: Any, inputs: tuple[Any, ...], _: Any) -> None:
        found.append(_counts(layer.feature_gate.output_logit(layer, inputs[0])))

    def look(_: NodeClassifier) -> Tensor:
        return torch.stack(found)

    hooks = [layer.register_forward_hook(count) for layer in layers]
    try:
        counts = group.observe(state, look)
    finally:
        for hook in hooks:
            hook.remove()
    return [tuple(map(tuple, run)) for run in counts.tolist()]


def _gated_layers(group: SeedGroup) -> list[AttentionLayer]:
    if isinstance(group.task.graph, tuple):
        return []
    return [
        layer
        for layer in group.model.convs
        if isinstance(layer, AttentionLayer) and layer.feature_gate.kind is not None
    ]


def _counts(logit: Tensor) -> Tensor:
    part = (logit.sigmoid() * BINS).long().clamp(max=BINS - 1)
    return torch.stack([(part == number).sum() for number in range(BINS)])
