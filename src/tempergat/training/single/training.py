"""Training of one run, with a checkpoint to continue from."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tempergat.base import UserError, replace_non_finite
from tempergat.data import (
    Dataset,
    GraphInput,
    ReadOptions,
    as_dataset,
    warn_of_notes,
)
from tempergat.training.devices import choose_device, device_name
from tempergat.training.exchange import require_same_progress
from tempergat.training.groups import finished_runs, make_loop, versions
from tempergat.training.loop import COLUMNS, Loop
from tempergat.training.memory import explain_out_of_memory
from tempergat.training.models import BuildModule, tensors_of
from tempergat.training.ranks import joined_ranks
from tempergat.training.record import Run
from tempergat.training.settings.config import RunConfig, settings_on
from tempergat.training.settings.overrides import make_overrides
from tempergat.training.settings.recipes import Recipe, recipe_for
from tempergat.training.single import checkpoint
from tempergat.training.single.metadata import Metadata, metadata_of, read_metadata
from tempergat.training.single.model import TrainedModel
from tempergat.training.single.progress import EpochLines
from tempergat.training.single.trackers import Tracker
from tempergat.training.user_source import callable_name, source_hash

OnEpoch = Callable[[int], None]

# In the middle of an epoch, where an epoch has many steps.
_MOST_SECONDS_BETWEEN_CHECKPOINTS = 60.0
_START_AGAIN = (
    f"choose another folder with --out (out= in Python), or {checkpoint.TRAIN_AGAIN}"
)
# A checkpoint is continued only by a run that agrees in these.
_IDENTITY = ("config", "seed", "fingerprint", "in_channels", "num_classes")


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
        settings: Settings by name in place of the recipe's, like ``{"hidden": 64}``.

    Returns:
        The model, with the weights of the selected epoch.

    Raises:
        UserError: The graph, the method or the settings cannot be used, or the folder
            holds the checkpoint of another run or a damaged one.
    """
    overrides = make_overrides(settings, metric, class_weights)
    _, chosen = recipe_for(graph, recipe)
    build = None if isinstance(method, str) else method
    if isinstance(method, str):
        config = chosen.config_for(method)
    else:
        config = chosen.config_for_module(callable_name(method), source_hash(method))
    config = overrides.applied_to(config, graph)
    place = choose_device(device)
    dataset = as_dataset(
        graph,
        split=split,
        split_seed=split_seed,
        options=read_options,
        scale=scale,
    )
    config = settings_on(config, dataset)
    if not isinstance(graph, Dataset):
        warn_of_notes(dataset)
    on_epoch = progress if callable(progress) else None
    if progress is True:
        on_epoch = EpochLines(config.epochs).print_line
    return train_model(
        dataset,
        config,
        seed,
        place,
        None if out is None else Path(out),
        resume=resume,
        on_epoch=on_epoch,
        tracker=tracker,
        build=build,
    )


def train_single(
    dataset: Dataset,
    config: RunConfig,
    seed: int,
    device: torch.device,
    checkpoint_dir: Path | None,
    **options: Any,
) -> Run:
    """Trains one run as `train_model` does, and returns its record alone."""
    return train_model(dataset, config, seed, device, checkpoint_dir, **options).run


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
    and ends, on a CPU, with bitwise the same weights as without the stop. Under
    `torchrun`, all its processes train the run together and the first one writes.

    Args:
        dataset: The graph, homogeneous.
        config: The settings.
        seed: The run's seed.
        device: Where to train.
        checkpoint_dir: The folder of the checkpoint file; None to write nothing.
        resume: Whether to continue from the checkpoint in the folder, if there is one,
            or to train from the start and overwrite it.
        checkpoint_every: Epochs between checkpoints; the last epoch always has one.
        on_epoch: Called with each epoch's number, from 1.
        tracker: Takes the run's numbers after every epoch.
        build: Builds a user's own module; None for the built-in methods.

    Raises:
        UserError: Nothing can be trained with these arguments, or the folder holds
            the checkpoint of another run or a damaged one.
    """
    if checkpoint_every < 1:
        raise UserError(
            f"checkpoint_every is {checkpoint_every}; give at least 1 epoch"
        )
    device = torch.device(device)
    start = time.perf_counter()
    with (
        joined_ranks(config, device) as ranks,
        explain_out_of_memory(config, 1, device),
    ):
        loop = make_loop(dataset, config, [seed], device, build=build, ranks=ranks)
        # Of several processes, one writes and reports.
        is_first = ranks is None or ranks.is_first
        facts = Metadata(
            config=config,
            seed=seed,
            in_channels=loop.batches.in_channels,
            device=device_name(device),
            versions=versions(),
            **metadata_of(dataset, config),
        )
        file = None
        if checkpoint_dir is not None:
            file = Path(checkpoint_dir) / checkpoint.CHECKPOINT_NAME
        if file is not None and resume and file.exists():
            start -= _continue_from(file, facts, loop)
        if ranks is not None:
            require_same_progress(ranks, loop.global_step)

        last_write = start

        def write(**values: Any) -> None:
            nonlocal last_write
            if file is not None and is_first:
                written = facts.model_dump(mode="json") | values
                checkpoint.write(file, loop.state(), written)
            last_write = time.perf_counter()

        def after_step() -> None:
            if time.perf_counter() - last_write >= _MOST_SECONDS_BETWEEN_CHECKPOINTS:
                write(time_s=time.perf_counter() - start)

        def after_epoch(epoch: int) -> None:
            if tracker is not None and is_first:
                row = loop.history[epoch - 1, 0].tolist()
                tracker.log(epoch, dict(zip(COLUMNS, row, strict=True)))
            if on_epoch is not None and is_first:
                on_epoch(epoch)

        # An epoch on samples may take hours.
        loop.on_step = after_step
        if loop.epochs_done == 0:
            # A folder that cannot be written to is noticed before any work is done.
            write()
        finished = _is_finished(loop)
        try:
            while not _is_finished(loop):
                following = loop.epochs_done // checkpoint_every + 1
                loop.run(until=following * checkpoint_every, on_epoch=after_epoch)
                if not _is_finished(loop):
                    write(time_s=time.perf_counter() - start)
        finally:
            if tracker is not None:
                tracker.finish()
        run = finished_runs(loop, dataset, start)[0]
        outcome: dict[str, Any] = {
            "gate_means": replace_non_finite(list(run.selected.gate_means)),
            "confusion": run.confusion and [list(row) for row in run.confusion],
        }
        if not finished:
            write(**outcome)
        facts = facts.model_copy(update=outcome)
        with torch.no_grad():
            for name, value in tensors_of(loop.runs.model).items():
                value.copy_(loop.best[name][0])
        return TrainedModel(loop.runs.model, facts, loop.state(), run)


def _is_finished(loop: Loop) -> bool:
    return loop.epochs_done == loop.config.epochs or loop.all_failed


def _continue_from(file: Path, facts: Metadata, loop: Loop) -> float:
    """Loads a checkpoint into a training; returns the seconds spent on it so far."""
    saved = checkpoint.read(file, _START_AGAIN)
    saved_facts = read_metadata(file, saved.metadata)
    _refuse_another_run(file, saved_facts, facts)
    _refuse_other_state(file, saved.tensors, loop)
    checkpoint.require_progress(file, saved.tensors, loop.config)
    loop.load_state(saved.tensors)
    return saved_facts.time_s


def _refuse_other_state(path: Path, saved: Mapping[str, Tensor], loop: Loop) -> None:
    wanted = loop.state()
    for name, parameter in loop.runs.parameters.items():
        # Adam has no moments of parameters that never had a gradient.
        if any(key.startswith(f"adam.{name}.") for key in saved):
            wanted[f"adam.{name}.step"] = torch.zeros(())
            wanted[f"adam.{name}.exp_avg"] = parameter
            wanted[f"adam.{name}.exp_avg_sq"] = parameter
    checkpoint.require_tensors(path, saved, wanted)
    others = sorted(set(saved) - set(wanted))
    if others:
        raise UserError(
            f"{path} holds {others[0]}, which this run does not have; {_START_AGAIN}"
        )


def _refuse_another_run(path: Path, saved: Metadata, wanted: Metadata) -> None:
    theirs, ours = (
        facts.model_dump(mode="json", include=set(_IDENTITY))
        for facts in (saved, wanted)
    )
    if saved.fingerprint != wanted.fingerprint and saved.dataset != wanted.dataset:
        # The settings of another graph are often others too.
        raise UserError(
            f"{path} belongs to another run: it was trained on {saved.dataset or '?'}, "
            f"not on {wanted.dataset}; {_START_AGAIN}"
        )
    for name in _IDENTITY:
        seen, value = theirs[name], ours[name]
        if seen == value:
            continue
        if name == "config":
            name = next(k for k in {**value, **seen} if seen.get(k) != value.get(k))
            seen, value = seen.get(name), value.get(name)
        difference = f"its {name} is {seen!r}, not {value!r}"
        if name == "fingerprint":
            difference = "its graph or split is another one"
        raise UserError(f"{path} belongs to another run: {difference}; {_START_AGAIN}")
