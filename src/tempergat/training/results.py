"""The records of finished runs: scores, curves, learned values, how they were made."""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
import torch_geometric
from torch import Tensor

import tempergat
from tempergat.data import Dataset
from tempergat.nn import (
    AttentionLayer,
    TypedNodeClassifier,
    temperature_of,
)
from tempergat.training.devices.choice import device_name
from tempergat.training.examples import SPLITS
from tempergat.training.loop import COLUMNS, Loop
from tempergat.training.metrics import Metric
from tempergat.training.record import (
    LayerRecord,
    Run,
    Scores,
    confusion_rows,
    numerics_of,
)
from tempergat.training.runs.models import State
from tempergat.training.runs.stacked import StackedRuns

# Takes a loop and the parameters and buffers of its runs at some epoch; returns for
# each run further attributes of its `LayerRecord`.
Measure = Callable[[Loop, State], list[dict[str, tuple[float, ...]]]]
# Equal parts from 0, closed, to 1, open.
BINS = 20

Counts = tuple[tuple[int, ...], ...]
# More points than this are not seen in a figure.
_MOST_POINTS = 50
_DIGITS = 5


def finished_runs(
    loop: Loop,
    dataset: Dataset,
    start: float,
    at_epochs: Mapping[int, Sequence[LayerRecord]] | None = None,
    rules: Sequence[str] = (),
    measure: Measure | None = None,
    **facts: Any,
) -> list[Run]:
    """The records of a finished training, one per run.

    Args:
        loop: All its epochs are done.
        dataset: The graph it was trained on.
        start: `time.perf_counter()` at its start.
        at_epochs: What the runs had learned at some epochs. If there are any, a run
            keeps that, and the same at its last epoch.
        rules: Selection rules at whose epochs it does so as well.
        measure: Further values of every layer; None for none.
        **facts: Further attributes of all runs.
    """
    count, rule = len(loop.runs.seeds), loop.config.selection
    # Waits for the device: before this, the epochs may be queued and not computed.
    history = loop.history.cpu().numpy()
    shared = _shared_facts(loop, (time.perf_counter() - start) / count)
    selected = layer_records(loop, loop.best, measure)
    last = layer_records(loop, loop.runs.state, measure if at_epochs else None)
    by_rule = {r: layer_records(loop, loop.kept[r].state, measure) for r in rules}
    evaluation = loop.judged(loop.task.evaluation, loop.best)
    gate_counts = count_gates(loop, loop.best)
    runs = []
    for slot, failed_epoch in enumerate(loop.failed_epoch.tolist()):
        rows = history[:, slot]
        outcome: dict[str, Any]
        if failed_epoch:
            outcome = {
                "status": "failed",
                "failed_epoch": failed_epoch,
                "reason": _failure_reason(rows[failed_epoch - 1], failed_epoch),
            }
        else:
            scores = scores_by_rule(rows, loop.task.metric)
            epochs = {r: chosen.epoch for r, chosen in scores.items()}
            learned = None
            if at_epochs:
                learned = {epoch: values[slot] for epoch, values in at_epochs.items()}
                learned |= {epochs[r]: values[slot] for r, values in by_rule.items()}
                learned = dict(sorted({**learned, len(rows): last[slot]}.items()))
            outcome = {
                "scores": scores,
                "selected": selected[slot],
                "last": last[slot],
                "layers_at_epochs": learned,
                "curves": thinned_curves(rows),
                "gate_counts": gate_counts[slot],
                "confusion": confusion_rows(
                    evaluation["confusion"][slot].cpu().numpy()
                ),
                "metrics": {
                    name: {rule: Scores(epochs[rule], *values[slot].tolist())}
                    for name, values in evaluation.items()
                    if name != "confusion"
                },
            }
        runs.append(
            Run(
                dataset=dataset.name,
                fingerprint=dataset.fingerprint,
                training_nodes=dataset.count("train"),
                shares=dataset.shares,
                seed=loop.runs.seeds[slot],
                **outcome,
                **shared,
                **facts,
            )
        )
    return runs


@torch.no_grad()
def layer_records(
    loop: Loop, state: State, measure: Measure | None = None
) -> list[LayerRecord]:
    """What each run has learned, at a state like `Loop.best`, in evaluation."""
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

    Returns:
        One entry per run; None for all where the gates are not counted, or where the
        method has none.
    """
    layers: list[AttentionLayer] = []
    model = loop.runs.model
    is_typed = isinstance(model, TypedNodeClassifier)
    if isinstance(loop.runs, StackedRuns) and not is_typed:
        convs = [c for c in model.convs if isinstance(c, AttentionLayer)]
        layers = [conv for conv in convs if conv.gate is not None]
    if not layers:
        return [None] * len(loop.runs.seeds)
    counted: dict[Any, Tensor] = {}

    def count(layer: Any, inputs: tuple[Any, ...], _: Any) -> None:
        part = (layer.gate_logit(inputs[0]).sigmoid() * BINS).long()
        part = part.clamp(max=BINS - 1)
        counts = [(part == number).sum() for number in range(BINS)]
        counted[layer] = torch.stack(counts)

    hooks = [layer.register_forward_hook(count) for layer in layers]
    try:
        with loop.runs.at(state):
            counts: Tensor = loop.runs.observe(
                loop.batches.batch,
                lambda _: torch.stack([counted[layer] for layer in layers]),
            )
    finally:
        for hook in hooks:
            hook.remove()
    return [tuple(map(tuple, run)) for run in counts.tolist()]


def _shared_facts(loop: Loop, time_s: float) -> dict[str, Any]:
    """What the records of all runs of a training have in common."""
    config, device = loop.config, loop.device
    memory = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None
    settings, name = config.model_dump(mode="json"), device_name(device)
    return {
        "method": config.method,
        "config": settings,
        "time_s": time_s,
        "memory_bytes": memory,
        "device": name,
        "numerics": numerics_of(name, settings),
        "versions": versions(),
        "parameter_count": sum(p.numel() for p in loop.runs.model.parameters()),
    }


def thinned_curves(history: np.ndarray) -> dict[str, tuple[float, ...]]:
    """At most fifty epochs, the first and the last among them, evenly spread.

    Args:
        history: One run's rows of `Loop.history`, [epochs, columns].

    Returns:
        The epochs as `epoch`, from 1, and the values by column.
    """
    count = min(len(history), _MOST_POINTS)
    places = np.unique(np.linspace(0, len(history) - 1, count).round().astype(int))
    curves = {"epoch": tuple(float(place + 1) for place in places)}
    for name, values in zip(COLUMNS, history[places].T, strict=True):
        curves[name] = tuple(float(f"{value:.{_DIGITS}g}") for value in values)
    return curves


def scores_by_rule(history: np.ndarray, metric: Metric) -> dict[str, Scores]:
    """Scores at the epoch that each rule chooses; history is one run's rows."""
    columns = dict(zip(COLUMNS, history.T, strict=True))
    # numpy's argmax and argmin return the first of equal values.
    places = {
        "best_val_accuracy": int(np.argmax(metric.merit(columns["val"]))),
        "last_epoch": len(history) - 1,
        "best_val_loss": int(np.argmin(columns["val_loss"])),
    }
    return {
        rule: Scores(place + 1, *(float(columns[split][place]) for split in SPLITS))
        for rule, place in places.items()
    }


def _failure_reason(row: np.ndarray, epoch: int) -> str:
    """Why a run failed, from the row of its history at the failed epoch."""
    values = dict(zip(COLUMNS, row, strict=True))
    name, loss = "loss", values["loss"]
    if math.isfinite(loss):
        name, loss = "validation loss", values["val_loss"]
    return f"the {name} was {loss} at epoch {epoch}"


def versions() -> dict[str, str]:
    """Versions of the packages that take part in a run."""
    modules = (tempergat, torch, torch_geometric, np)
    return {"python": platform.python_version()} | {
        module.__name__: str(module.__version__) for module in modules
    }
