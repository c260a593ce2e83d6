"""Training of the seeds of one method, from a dataset to finished runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from tempergat.base import UserError
from tempergat.data import Dataset
from tempergat.nn import METHODS
from tempergat.training.devices.capture import EPOCHS_TO_CAPTURE
from tempergat.training.devices.memory import explain_out_of_memory
from tempergat.training.exchange import Exchange, GraphPart, prepare_ranks
from tempergat.training.graphs.batches import WholeGraph
from tempergat.training.graphs.inputs import edge_dim_of, in_channels_of, types_of
from tempergat.training.graphs.sampled import sampled_graph
from tempergat.training.graphs.sampled_batches import SampledBatches
from tempergat.training.loop import Loop
from tempergat.training.preparation import Preparation
from tempergat.training.ranks import Ranks
from tempergat.training.record import Run
from tempergat.training.results import finished_runs, layer_records
from tempergat.training.runs.models import single_model
from tempergat.training.runs.modules import ModuleRuns
from tempergat.training.runs.stacked import StackedRuns
from tempergat.training.runs.user_modules import BuildModule, build_user_module
from tempergat.training.settings.config import RunConfig
from tempergat.training.tasks import node_classes, refuse_other_training

# Where the temperatures and mean gates of a run are recorded, besides its last epoch.
_EPOCHS_RECORDED = (10, 25, 50, 100, 200, 300, 400, 600, 800)
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
        config: The settings; they say whether a step sees the whole graph.
        seeds: The seeds; a single one for training on samples or by several processes.
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
    shape = (in_channels_of(dataset, config), task.predicted.width)
    runs: StackedRuns | ModuleRuns
    if build is not None:
        modules = [build_user_module(build, config.method, *shape, s) for s in seeds]
        runs = ModuleRuns(
            task, config, seeds, modules, batches.example, prefixed=is_full
        )
        return Loop(runs, batches, config, exchange)
    edge_dim = edge_dim_of(config, dataset.edge_feature_names)
    model = single_model(config, *shape, seeds[0], edge_dim, types_of(dataset))
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
    shape = (in_channels_of(dataset, config), task.predicted.width)
    module = build_user_module(build, config.method, *shape, seed=0)
    runs = ModuleRuns(task, config, [0], [module], graph.example)
    if config.training == "full":
        runs.try_in_training(graph.batch)


def train_group(
    dataset: Dataset,
    config: RunConfig,
    seeds: Sequence[int],
    device: torch.device,
    build: BuildModule | None = None,
    preparation: Preparation | None = None,
    on_epoch: Callable[[int], None] | None = None,
) -> list[Run]:
    """Trains all seeds of one method.

    Full-batch, seeds of a built-in method are trained at once and those of a user's
    own module one after the other; so are all seeds in sampled training.

    Args:
        seeds: The seeds, one run each.
        build: Builds a user's own module from the numbers of features and classes;
            None for the built-in methods.
        preparation: What is done to features and model before; None for nothing.
        on_epoch: Called with each epoch's number, from 1.

    Returns:
        The runs in the order of the seeds.

    Raises:
        UserError: Nothing can be trained with these arguments.
        OutOfMemory: The device has too little memory for so many runs at once.
    """
    device = torch.device(device)
    if config.training == "sampled" and len(seeds) > 1:
        options = (device, build, preparation, on_epoch)
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
            epochs, rules = _recorded_moments(loop, preparation)
            for rule in rules:
                loop.keep_best(rule)
            if device.type == "cuda" and config.training == "full":
                # A moment before the capture is measured in its place.
                first = () if preparation is None else preparation.epochs
                loop.run(until=min((EPOCHS_TO_CAPTURE, *first)), on_epoch=on_epoch)
        measure = None
        if preparation is not None and isinstance(loop.runs, StackedRuns):
            measure = preparation.measure
        learned = {}
        # Between these epochs the training goes on as without them: on a GPU its CUDA
        # graph is kept, and each of them costs one or two forward passes.
        for epoch in epochs:
            loop.run(until=epoch, on_epoch=on_epoch)
            learned[epoch] = layer_records(loop, loop.runs.state, measure)
        loop.run(on_epoch=on_epoch)
        facts: dict[str, Any] = {}
        if preparation is not None:
            facts["condition"] = preparation.stored_condition
            facts["matmul_precision"] = preparation.matmul_precision
        return finished_runs(loop, dataset, start, learned, rules, measure, **facts)


def _recorded_moments(
    loop: Loop, preparation: Preparation | None
) -> tuple[list[int], Sequence[str]]:
    """Epochs at which learned values are recorded, and rules at whose epochs too.

    Epochs that the training does not reach before its last one are left out. There are
    none for methods that learn no such values.
    """
    if not isinstance(loop.runs, StackedRuns):
        return [], ()
    method = METHODS[loop.config.method]
    epochs: Sequence[int] = ()
    rules: Sequence[str] = ()
    if preparation is not None and (preparation.measure or preparation.epochs):
        epochs, rules = preparation.epochs, ("best_val_accuracy", "best_val_loss")
    elif method.gate is not None or method.temperature is not None:
        epochs = _EPOCHS_RECORDED
    reached = sorted(epoch for epoch in epochs if epoch < loop.config.epochs)
    return reached, rules if reached else ()


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
