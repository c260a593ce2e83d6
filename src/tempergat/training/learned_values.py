"""What runs have learned: temperatures and mean gates at some epochs, and gates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tempergat.nn import AttentionLayer, NodeClassifier
from tempergat.training.loop import Loop
from tempergat.training.models import State
from tempergat.training.record import LayerRecord, Run
from tempergat.training.runs import StackedRuns

# Takes a loop and the parameters and buffers of its runs at some epoch; returns for
# each run further attributes of its `LayerRecord`.
Measure = Callable[[Loop, State], list[dict[str, tuple[float, ...]]]]
# Equal parts from 0, closed, to 1, open.
BINS = 20

Counts = tuple[tuple[int, ...], ...]


class Moments:
    """The learned values of stacked runs at fixed and at selected epochs.

    Between fixed epochs the training goes on as without them: on a GPU its CUDA graph
    is kept, and each moment costs one or two forward passes.

    Args:
        loop: A training that has done no epoch yet.
        measure: Further values of every layer; None for none.
        epochs: The fixed epochs, from 1; those that the training does not reach are
            left out. Without any, nothing is recorded at the selected epochs of rules
            other than the configured one.
        rules: Selection rules at whose epochs values are recorded as well.
    """

    def __init__(
        self,
        loop: Loop,
        measure: Measure | None,
        epochs: Iterable[int],
        rules: Sequence[str] = ("best_val_accuracy", "best_val_loss"),
    ) -> None:
        self._loop = loop
        self._measure = measure
        self._epochs = sorted(e for e in epochs if e < loop.config.epochs)
        self._fixed: dict[int, list[LayerRecord]] = {}
        if self._epochs:
            for rule in rules:
                loop.keep_best(rule)
        self._rules = (*rules, "last_epoch")

    def train(self, on_epoch: Callable[[int], None] | None = None) -> None:
        """Trains to the end, as `Loop.run` does."""
        for epoch in self._epochs:
            self._loop.run(until=epoch, on_epoch=on_epoch)
            self._fixed[epoch] = self._records(self._loop.current)
        self._loop.run(on_epoch=on_epoch)

    def add_to(self, runs: Sequence[Run]) -> list[Run]:
        """The finished runs with their learned values."""
        selected = self._records(self._loop.best)
        if not self._epochs:
            return [
                replace(run, selected=record) if run.status == "done" else run
                for run, record in zip(runs, selected, strict=True)
            ]
        by_rule = {
            rule: self._records(self._loop.best_by(rule)) for rule in self._rules
        }
        complete = []
        for slot, run in enumerate(runs):
            if run.status != "done":
                complete.append(run)
                continue
            at_epochs = {epoch: values[slot] for epoch, values in self._fixed.items()}
            for rule, values in by_rule.items():
                at_epochs[run.scores[rule].epoch] = values[slot]
            complete.append(
                replace(
                    run,
                    selected=selected[slot],
                    last=by_rule["last_epoch"][slot],
                    layers_at_epochs=dict(sorted(at_epochs.items())),
                )
            )
        return complete

    def _records(self, state: State) -> list[LayerRecord]:
        records = layer_records(self._loop.layer_values(state))
        if self._measure is None:
            return records
        measured = self._measure(self._loop, state)
        return [
            replace(record, **values)
            for record, values in zip(records, measured, strict=True)
        ]


def layer_records(values: State) -> list[LayerRecord]:
    """One record per run; a layer's value is its mean over heads."""
    return [
        LayerRecord(
            tuple(float(np.mean(value)) for value in temperatures),
            tuple(float(np.mean(value)) for value in gate_means),
        )
        for temperatures, gate_means in zip(
            values["temperatures"].tolist(), values["gate_means"].tolist(), strict=True
        )
    ]


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
    layers = _gated_layers(loop)
    if not layers:
        return [None] * len(loop.runs.seeds)
    counts_by_layer: list[Tensor] = []

    def count(layer: Any, inputs: tuple[Any, ...], _: Any) -> None:
        logit = layer.gate_logit(inputs[0])
        counts_by_layer.append(_counts(logit))

    def look(_: NodeClassifier) -> Tensor:
        return torch.stack(counts_by_layer)

    hooks = [layer.register_forward_hook(count) for layer in layers]
    try:
        counts = loop.observe(state, look)
    finally:
        for hook in hooks:
            hook.remove()
    return [tuple(map(tuple, run)) for run in counts.tolist()]


def _gated_layers(loop: Loop) -> list[AttentionLayer]:
    is_stacked = isinstance(loop.runs, StackedRuns)
    if not is_stacked or isinstance(loop.batches.batch.graph, tuple):
        return []
    return [
        layer
        for layer in loop.runs.model.convs
        if isinstance(layer, AttentionLayer) and layer.gate is not None
    ]


def _counts(logit: Tensor) -> Tensor:
    part = (logit.sigmoid() * BINS).long().clamp(max=BINS - 1)
    return torch.stack([(part == number).sum() for number in range(BINS)])
