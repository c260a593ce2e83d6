"""What runs have learned: temperatures, mean gates, and how many gates are open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tempergat.nn import AttentionLayer, NodeClassifier, temperature_of
from tempergat.training.loop import Loop
from tempergat.training.record import LayerRecord
from tempergat.training.runs.models import State
from tempergat.training.runs.stacked import StackedRuns

# Takes a loop and the parameters and buffers of its runs at some epoch; returns for
# each run further attributes of its `LayerRecord`.
Measure = Callable[[Loop, State], list[dict[str, tuple[float, ...]]]]
# Equal parts from 0, closed, to 1, open.
BINS = 20

Counts = tuple[tuple[int, ...], ...]


@torch.no_grad()
def layer_records(
    loop: Loop, state: State, measure: Measure | None = None
) -> list[LayerRecord]:
    """What each run has learned, at given parameters and buffers, in evaluation.

    Args:
        loop: The runs.
        state: Parameters and buffers, like `Loop.best`.
        measure: Further values of every layer; None for none.
    """
    runs = loop.runs

    def compute() -> State:
        nothing = torch.empty(len(runs.seeds), 0, device=loop.device)
        values = {"temperatures": nothing, "gate_means": nothing}
        if not runs.is_own:
            values["temperatures"] = temperatures_of(state, nothing)
        if runs.has_gates:
            with runs.at(state):
                values["gate_means"] = loop.batches.gate_means(runs)
        return values

    values = loop.from_first(compute)
    measured = [{}] * len(runs.seeds) if measure is None else measure(loop, state)
    return [
        LayerRecord(tuple(temperatures), tuple(gate_means), **further)
        for temperatures, gate_means, further in zip(
            values["temperatures"].tolist(),
            values["gate_means"].tolist(),
            measured,
            strict=True,
        )
    ]


def temperatures_of(state: State, nothing: Tensor) -> Tensor:
    """The temperature of each layer, averaged over heads, [runs, layers].

    Args:
        state: Parameters and buffers, [runs, ...] each.
        nothing: [runs, 0]; what is returned for methods without temperature.
    """
    names = (f"convs.{layer}.theta" for layer in range(len(state)))
    temperatures = [
        # [runs] or, with one temperature per head, [runs, heads].
        temperature_of(state[name].detach()).reshape(nothing.size(0), -1).mean(1)
        for name in names
        if name in state
    ]
    return torch.stack(temperatures, dim=1) if temperatures else nothing


def count_gates(loop: Loop, state: State) -> list[Counts | None]:
    """For each run and layer, how many gates lie in each part, in evaluation.

    Args:
        loop: The runs. Only those that are stacked and on a graph without node types
            are counted.
        state: Parameters and buffers, like `Loop.best`.

    Returns:
        One entry per run; None for all where the gates are not counted, or where the
        method has none.
    """
    layers: list[AttentionLayer] = []
    if isinstance(loop.runs, StackedRuns) and loop.batches.node_types is None:
        convs = [c for c in loop.runs.model.convs if isinstance(c, AttentionLayer)]
        layers = [conv for conv in convs if conv.gate is not None]
    if not layers:
        return [None] * len(loop.runs.seeds)
    counts_by_layer: list[Tensor] = []

    def count(layer: Any, inputs: tuple[Any, ...], _: Any) -> None:
        part = (layer.gate_logit(inputs[0]).sigmoid() * BINS).long()
        part = part.clamp(max=BINS - 1)
        counts = [(part == number).sum() for number in range(BINS)]
        counts_by_layer.append(torch.stack(counts))

    def take(_: NodeClassifier) -> Tensor:
        counts = torch.stack(counts_by_layer)
        counts_by_layer.clear()
        return counts

    hooks = [layer.register_forward_hook(count) for layer in layers]
    try:
        counts = loop.observe(state, take)
    finally:
        for hook in hooks:
            hook.remove()
    return [tuple(map(tuple, run)) for run in counts.tolist()]
