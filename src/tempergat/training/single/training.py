"""Training of one run, with a checkpoint to continue from."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from tempergat.base import UserError, replace_non_finite
from tempergat.data import (
    Dataset,
    GraphInput,
    ReadOptions,
    as_dataset,
    warn_of_notes,
)
from tempergat.training.devices.choice import choose_device
from tempergat.training.devices.memory import explain_out_of_memory
from tempergat.training.exchange import require_same_progress
from tempergat.training.groups import make_loop
from tempergat.training.loop import COLUMNS
from tempergat.training.ranks import joined_ranks
from tempergat.training.record import confusion_as_json
from tempergat.training.results import finished_runs
from tempergat.training.runs.models import load_tensors
from tempergat.training.runs.user_modules import BuildModule, callable_name, source_hash
from tempergat.training.settings.config import RunConfig, settings_on
from tempergat.training.settings.overrides import make_overrides
from tempergat.training.settings.recipes import Recipe, recipe_for
from tempergat.training.single.metadata import metadata_of
from tempergat.training.single.model import TrainedModel
from tempergat.training.single.progress import EpochLines, Tracker
from tempergat.training.single.run_file import RunFile

OnEpoch = Callable[[int], None]


def train(
    graph: GraphInput,
    method: str | BuildModule = "temp_gated",
    *,
    seed: int = 0,
    recipe: str | Path | Recipe | None = None,
    split: int | str | None = None,
    split_seed: int | None = None,
    device: str | torch.device = "auto",
    out: str | os.PathLike[str] | None = None,
    resume: bool = True,
    progress: bool | OnEpoch = True,
    tracker: Tracker | None = None,
    read_options: ReadOptions | None = None,
    scale: bool = True,
    metric: str | None = None,
    class_weights: str | None = None,
    settings: Mapping[str, Any] | None = None,
    **keywords: Any,
) -> TrainedModel:
    """Trains one model.

    Args:
        graph: A PyG ``Data``, a dataset, the path of a graph, or a name from
            `tempergat data list`.
        method: A key of ``METHODS``, or a callable that takes the numbers of features
            and classes and returns a module to be called as ``module(x, edge_index)``.
        seed: Seed of the initial weights and of dropout.
        recipe: A recipe, its name or its file; None for the recipe of the dataset
            or, without one, `default`. It has residuals and batch norm; `plain` has
            neither.
        split: The number of a split the graph comes with, or percentages like
            ``"60/20/20"`` for a split made here.
        split_seed: Seed of a split made here.
        device: `auto`, `cpu`, `cuda` or `cuda:1`.
        out: Folder of a checkpoint, from which a run that was stopped continues; None
            to write nothing.
        resume: Whether to continue from the checkpoint in the folder.
        progress: Whether to print the progress to standard error, or a function that
            is called with each epoch's number, from 1.
        tracker: Takes the run's numbers after every epoch.
        read_options: How a user graph is read; the defaults when left out.
        scale: Whether to scale numeric columns of a user graph by their mean and
            deviation.
        metric: What is reported and selected by; None for the metric of the graph.
        class_weights: `balanced` for classes of equal weight in the loss.
        settings: Settings by name in place of the recipe's, like ``{"hidden": 64}``;
            `tempergat methods --settings` lists them.
        **keywords: Settings by the names of the command's flags, like ``epochs=60``.

    Returns:
        The model, with the weights of the selected epoch.

    Raises:
        UserError: The graph, the method or the settings cannot be used, or the folder
            holds the checkpoint of another run or a damaged one.
    """
    keywords |= {"metric": metric, "class_weights": class_weights}
    overrides = make_overrides(settings, keywords=keywords, beside=train)
    _, chosen = recipe_for(graph, recipe)
    if isinstance(method, str):
        config, build = chosen.config_for(method), None
    else:
        config = chosen.config_for(callable_name(method), source_hash(method))
        build = method
    overrides.notes_for([config.method])
    config = overrides.applied_to(config, graph)
    place = choose_device(device)
    dataset = as_dataset(
        graph, split=split, split_seed=split_seed, options=read_options, scale=scale
    )
    config = settings_on(config, dataset)
    if not isinstance(graph, Dataset):
        warn_of_notes(dataset)
    on_epoch = progress if callable(progress) else None
    if progress is True:
        on_epoch = EpochLines(config.epochs).print_line
    folder = None if out is None else Path(out)
    options: dict[str, Any] = {"on_epoch": on_epoch, "tracker": tracker}
    options |= {"resume": resume, "build": build}
    return train_model(dataset, config, seed, place, folder, **options)


def train_model(
    dataset: Dataset,
    config: RunConfig,
    seed: int,
    device: torch.device,
    checkpoint_dir: Path | None,
    *,
    resume: bool = True,
    checkpoint_every: int = 50,
    on_epoch: OnEpoch | None = None,
    tracker: Tracker | None = None,
    build: BuildModule | None = None,
) -> TrainedModel:
    """Trains one run, with a checkpoint to continue from.

    A run that was stopped, at any point and in any way, continues from its checkpoint
    and ends, on a CPU with as many threads, with bitwise the same weights. Under
    `torchrun`, all its processes train the run together and the first one writes.

    Args:
        checkpoint_dir: The folder of the checkpoint file; None to write nothing.
        resume: Whether to continue from the checkpoint in the folder, if there is one,
            or to train from the start and overwrite it.
        checkpoint_every: Epochs between checkpoints; the last epoch always has one.
        on_epoch: Called with each epoch's number, from 1.
        build: Builds a user's own module; None for the built-in methods.

    Raises:
        UserError: Nothing can be trained with these arguments, or the folder holds
            the checkpoint of another run or a damaged one.
    """
    if checkpoint_every < 1:
        raise UserError(
            f"checkpoint_every is {checkpoint_every}; give at least 1 epoch"
        )
    device, start = torch.device(device), time.perf_counter()
    memory = explain_out_of_memory(config, 1, device)
    with joined_ranks(config, device) as ranks, memory:
        loop = make_loop(dataset, config, [seed], device, build=build, ranks=ranks)
        # Of several processes, one writes and reports.
        is_first = ranks is None or ranks.is_first
        metadata = metadata_of(dataset, config, seed, device)
        file = RunFile(checkpoint_dir if is_first else None, metadata, loop, start)
        if resume and checkpoint_dir is not None:
            file.load_from(Path(checkpoint_dir))
        if ranks is not None:
            require_same_progress(ranks, loop.global_step)

        def after_epoch(epoch: int) -> None:
            if tracker is not None and is_first:
                row = loop.history[epoch - 1, 0].tolist()
                tracker.log(epoch, dict(zip(COLUMNS, row, strict=True)))
            if on_epoch is not None and is_first:
                on_epoch(epoch)

        was_finished = file.is_finished
        try:
            file.train(checkpoint_every, after_epoch)
        finally:
            if tracker is not None:
                tracker.finish()
        run = finished_runs(loop, dataset, file.start)[0]
        outcome: dict[str, Any] = {
            "gate_means": replace_non_finite(list(run.selected.gate_means)),
            "confusion": confusion_as_json(run.confusion),
        }
        if not was_finished:
            file.write(**outcome)
        metadata = metadata.model_copy(update=outcome)
        load_tensors(loop.runs.model, loop.best)
        return TrainedModel(loop.runs.model, metadata, loop.state(), run)
