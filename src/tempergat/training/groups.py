"""Training of the seeds of one method, from a dataset to finished runs."""

from __future__ import annotations

import math
import platform
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import torch_geometric

import tempergat
from tempergat.base import UserError
from tempergat.data import Dataset
from tempergat.training.batches import SampledBatches, WholeGraph
from tempergat.training.capture import EPOCHS_TO_CAPTURE
from tempergat.training.devices import device_name
from tempergat.training.exchange import Exchange, GraphPart, prepare_ranks
from tempergat.training.learned_values import Moments, count_gates, layer_records
from tempergat.training.loop import COLUMNS, Loop, chosen_epochs
from tempergat.training.memory import explain_out_of_memory
from tempergat.training.models import (
    BuildModule,
    State,
    build_user_module,
    single_model,
)
from tempergat.training.preparation import Preparation
from tempergat.training.ranks import Ranks
from tempergat.training.record import Run, Scores, numerics_of
from tempergat.training.runs import ModuleRuns, StackedRuns
from tempergat.training.sampled_graph import sampled_graph
from tempergat.training.settings.config import RunConfig
from tempergat.training.tasks import SPLITS, node_classes, refuse_other_training

# Where the temperatures and mean gates of a run are recorded, besides its last epoch.
_EPOCHS_RECORDED = (10, 25, 50, 100, 200, 300, 400, 600, 800)
# More points than this are not seen in a figure.
_MOST_POINTS = 50
_DIGITS = 5
# Groups may be trained in several threads, but only one is prepared at a time: weights
# are drawn from torch's generator, which all threads share.
_one_at_a_time = threading.Lock()


def make_loop(
    dataset: Dataset,
    config: RunConfig,
    seeds: Sequence[int],
    device: torch.device,
    *,
    build: BuildModule | None = None,
    preparation: Preparation | None = None,
    ranks: Ranks | None = None,
) -> Loop:
    """The training of some runs before its first epoch.

    Args:
        dataset: The graph.
        config: The settings; they say whether a step sees the whole graph.
        seeds: The seeds; a single one for training on samples or by several processes.
        device: Where to train.
        build: Builds a user's own module; None for the built-in methods.
        preparation: What is done to features and model before; None for nothing.
        ranks: The processes that train together; None for one alone.

    Raises:
        UserError: Nothing can be trained with these arguments.
    """
    if not seeds:
        raise UserError("no seeds were given; give at least one")
    if preparation is not None:
        preparation.refuse_other_training(dataset, config)
    refuse_other_training(dataset, config)
    if ranks is not None:
        prepare_ranks(dataset, ranks)
        device = ranks.device
    task = node_classes(dataset, config, device)
    is_full = config.training == "full"
    batches: WholeGraph | SampledBatches | GraphPart
    exchange = None
    if is_full and ranks is None:
        batches = WholeGraph(dataset, config, task, seeds, preparation)
    else:
        (seed,) = seeds
        graph = sampled_graph(dataset, config, device)
        if ranks is None:
            batches = SampledBatches(graph, config, task, seed)
        elif is_full:
            batches = GraphPart(graph, config, task, seed, ranks)
            exchange = Exchange(ranks, batches.sizes)
        else:
            place = (ranks.rank, ranks.world_size)
            batches = SampledBatches(graph, config, task, seed, *place)
            exchange = Exchange(ranks)
    shape = (batches.in_channels, task.num_classes)
    runs: StackedRuns | ModuleRuns
    if build is not None:
        modules = [build_user_module(build, config.method, *shape, s) for s in seeds]
        runs = ModuleRuns(
            task, config, seeds, modules, batches.example, prefixed=is_full
        )
        return Loop(runs, batches, config, exchange)
    model = single_model(config, *shape, seeds[0], batches.edge_dim, batches.node_types)
    if isinstance(batches, WholeGraph):
        if preparation is not None and preparation.model is not None:
            preparation.model(model, batches.batch.graph)
        runs = StackedRuns(task, config, seeds, model)
    else:
        runs = ModuleRuns(task, config, seeds, [model])
    return Loop(runs, batches, config, exchange)


def check_user_module(
    dataset: Dataset, config: RunConfig, device: torch.device, build: BuildModule
) -> None:
    """Builds a user's module and runs it once, before any run is trained.

    Raises:
        UserError: The module cannot be built or called, or returns something else
            than class scores.
    """
    refuse_other_training(dataset, config)
    task = node_classes(dataset, config, device)
    graph = WholeGraph(dataset, config, task)
    shape = (graph.in_channels, task.num_classes)
    module = build_user_module(build, config.method, *shape, seed=0)
    ModuleRuns(task, config, [0], [module], graph.example)


def train_group(
    dataset: Dataset,
    config: RunConfig,
    seeds: Sequence[int],
    device: torch.device,
    on_epoch: Callable[[int], None] | None = None,
    build: BuildModule | None = None,
    preparation: Preparation | None = None,
) -> list[Run]:
    """Trains all seeds of one method.

    Full-batch, seeds of a built-in method are trained at once and those of a user's
    own module one after the other; so are all seeds in sampled training.

    Args:
        dataset: The graph.
        config: The settings.
        seeds: The seeds, one run each.
        device: Where to train.
        on_epoch: Called with each epoch's number, from 1.
        build: Builds a user's own module from the numbers of features and classes;
            None for the built-in methods.
        preparation: What is done to features and model before; None for nothing.

    Returns:
        The runs in the order of the seeds.

    Raises:
        UserError: Nothing can be trained with these arguments.
        OutOfMemory: The device has too little memory for so many runs at once.
    """
    device = torch.device(device)
    if config.training == "sampled" and len(seeds) > 1:
        options = (device, on_epoch, build, preparation)
        one_by_one = (train_group(dataset, config, [s], *options) for s in seeds)
        return [run for runs in one_by_one for run in runs]
    start = time.perf_counter()
    memory = explain_out_of_memory(config, len(seeds), device)
    with memory, _precision(preparation, device):
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        with _one_at_a_time:
            loop = make_loop(
                dataset, config, seeds, device, build=build, preparation=preparation
            )
            moments = _moments(loop, preparation)
            if device.type == "cuda" and config.training == "full":
                # A moment before the capture is measured in its place.
                first = () if preparation is None else preparation.epochs
                loop.run(until=min((EPOCHS_TO_CAPTURE, *first)), on_epoch=on_epoch)
        if moments is None:
            loop.run(on_epoch=on_epoch)
            runs = finished_runs(loop, dataset, start)
        else:
            moments.train(on_epoch)
            runs = moments.add_to(finished_runs(loop, dataset, start))
    if preparation is None:
        return runs
    known: dict[str, Any] = {
        "condition": preparation.stored_condition,
        "matmul_precision": preparation.matmul_precision,
    }
    return [replace(run, **known) for run in runs]


def _moments(loop: Loop, preparation: Preparation | None) -> Moments | None:
    """What is recorded on the way; None for methods that learn no such values."""
    if not isinstance(loop.runs, StackedRuns):
        return None
    if preparation is not None and (preparation.measure or preparation.epochs):
        return Moments(loop, preparation.measure, preparation.epochs)
    if not loop.runs.has_learned_values:
        return None
    return Moments(loop, None, _EPOCHS_RECORDED, rules=())


@contextmanager
def _precision(preparation: Preparation | None, device: torch.device) -> Iterator[None]:
    if preparation is None or device.type != "cuda":
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(preparation.matmul_precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def finished_runs(loop: Loop, dataset: Dataset, start: float) -> list[Run]:
    """The records of a finished training, one per run.

    Args:
        loop: All its epochs are done.
        dataset: The graph it was trained on.
        start: `time.perf_counter()` at its start.
    """
    config, device = loop.config, loop.device
    # Waits for the device: before this, the epochs may be queued and not computed.
    history = loop.history.cpu().numpy()
    time_s = (time.perf_counter() - start) / len(loop.runs.seeds)
    memory = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None
    shared: dict[str, Any] = {
        "dataset": dataset.name,
        "fingerprint": dataset.fingerprint,
        "method": config.method,
        "config": config.model_dump(mode="json"),
        "time_s": time_s,
        "memory_bytes": memory,
        "device": device_name(device),
        "numerics": numerics_of(device_name(device)),
        "versions": versions(),
        "parameter_count": sum(p.numel() for p in loop.runs.model.parameters()),
        "training_nodes": dataset.count("train"),
    }
    selected = layer_records(loop.layer_values(loop.best))
    last = layer_records(loop.layer_values(loop.current))
    evaluation = loop.evaluation(loop.best)
    gate_counts = count_gates(loop, loop.best)
    runs = []
    for slot, (seed, failed_epoch) in enumerate(
        zip(loop.runs.seeds, loop.failed_epoch.tolist(), strict=True)
    ):
        outcome: dict[str, Any]
        if failed_epoch:
            outcome = {
                "status": "failed",
                "failed_epoch": failed_epoch,
                "reason": failure_reason(history[failed_epoch - 1, slot], failed_epoch),
            }
        else:
            outcome = {
                "scores": scores_by_rule(history[:, slot]),
                "selected": selected[slot],
                "last": last[slot],
                "curves": thinned_curves(history[:, slot]),
                "gate_counts": gate_counts[slot],
                **_further_scores(evaluation, slot, config, history[:, slot]),
            }
        runs.append(Run(seed=seed, **outcome, **shared))
    return runs


def _further_scores(
    evaluation: State, slot: int, config: RunConfig, history: np.ndarray
) -> dict[str, Any]:
    """A run's confusion matrix and further metrics, at the selected epoch."""
    epoch = chosen_epochs(history)[config.selection]
    return {
        "confusion": tuple(map(tuple, evaluation["confusion"][slot].tolist())),
        "metrics": {
            name: {config.selection: Scores(epoch, *scores[slot].tolist())}
            for name, scores in evaluation.items()
            if name != "confusion"
        },
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


def scores_by_rule(history: np.ndarray) -> dict[str, Scores]:
    """Scores by selection rule; history is one run's, [epochs, columns]."""
    return {
        rule: Scores(
            epoch,
            *(float(history[epoch - 1, COLUMNS.index(split)]) for split in SPLITS),
        )
        for rule, epoch in chosen_epochs(history).items()
    }


def failure_reason(row: np.ndarray, epoch: int) -> str:
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
