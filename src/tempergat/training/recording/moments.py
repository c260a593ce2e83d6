"""What the runs of a group have learned at chosen epochs of their training."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from tempergat.training.loop import EpochLoop
from tempergat.training.record import LayerRecord, Run
from tempergat.training.seeds import LayerValues, SeedGroup, State

# Takes a group and its parameters and buffers at some epoch; returns for each run
# further attributes of its `LayerRecord`.
Measure = Callable[[SeedGroup, State], list[dict[str, tuple[float, ...]]]]


class Moments:
    """The learned values of all runs of a group at fixed and at selected epochs.

    Between fixed epochs the training goes on as without them: on a GPU its CUDA graph
    is kept, and each moment costs one or two forward passes.

    Args:
        training: A training that has done no epoch yet.
        measure: Further values of every layer; None for none.
        epochs: The fixed epochs, from 1; those that the training does not reach are
            left out. Without any, nothing is recorded at the selected epochs of rules
            other than the configured one.
        rules: Selection rules at whose epochs values are recorded as well.
    """

    def __init__(
        self,
        training: EpochLoop,
        measure: Measure | None,
        epochs: Iterable[int],
        rules: Sequence[str] = ("best_val_accuracy", "best_val_loss"),
    ) -> None:
        if not isinstance(training.group, SeedGroup):
            raise TypeError("values at chosen epochs are for built-in methods")
        self._training = training
        self._group = training.group
        self._measure = measure
        self._epochs = sorted(e for e in epochs if e < training.config.epochs)
        self._fixed: dict[int, list[LayerRecord]] = {}
        if self._epochs:
            for rule in rules:
                training.keep_best(rule)
        self._rules = (*rules, "last_epoch")

    def train(self, on_epoch: Callable[[int], None] | None = None) -> None:
        """Trains to the end, as `EpochLoop.run` does."""
        for epoch in self._epochs:
            self._training.run(until=epoch, on_epoch=on_epoch)
            self._fixed[epoch] = self._records(self._training.current)
        self._training.run(on_epoch=on_epoch)

    def add_to(self, runs: Sequence[Run]) -> list[Run]:
        """The finished runs of the group with their learned values."""
        selected = self._records(self._training.best)
        if not self._epochs:
            return [
                replace(run, selected=record) if run.status == "done" else run
                for run, record in zip(runs, selected, strict=True)
            ]
        by_rule = {
            rule: self._records(self._training.best_by(rule)) for rule in self._rules
        }
        found = []
        for slot, run in enumerate(runs):
            if run.status != "done":
                found.append(run)
                continue
            at_epochs = {epoch: values[slot] for epoch, values in self._fixed.items()}
            for rule, values in by_rule.items():
                at_epochs[run.scores[rule].epoch] = values[slot]
            found.append(
                replace(
                    run,
                    selected=selected[slot],
                    last=by_rule["last_epoch"][slot],
                    layers_at_epochs=dict(sorted(at_epochs.items())),
                )
            )
        return found

    def _records(self, state: State) -> list[LayerRecord]:
        records = layer_records(self._group.layer_values(state))
        if self._measure is None:
            return records
        measured = self._measure(self._group, state)
        return [
            replace(record, **values)
            for record, values in zip(records, measured, strict=True)
        ]


def layer_records(values: LayerValues) -> list[LayerRecord]:
    """One record per run; a layer's value is its mean over heads."""
    return [
        LayerRecord(
            tuple(float(np.mean(value)) for value in temperatures),
            tuple(float(np.mean(value)) for value in gate_means),
        )
        for temperatures, gate_means in zip(
            values.temperatures.tolist(), values.gate_means.tolist(), strict=True
        )
    ]
