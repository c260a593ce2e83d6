"""One run with checkpoints, and predictions from them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict, ValidationError
from torch import Tensor

from tempergat.base import UserError, first_validation_error
from tempergat.data import Dataset
from tempergat.training import checkpoint
from tempergat.training.config import Count, RunConfig
from tempergat.training.hardware import explain_out_of_memory
from tempergat.training.loop import COLUMNS, Training
from tempergat.training.record import Run
from tempergat.training.run import finished_runs
from tempergat.training.seeds import SeedGroup, single_model
from tempergat.training.task import (
    features_of,
    graph_of,
    refuse_other_training,
    task_of,
)
from tempergat.training.trackers import Tracker

CHECKPOINT_NAME = "checkpoint.safetensors"
_START_ANEW = "choose another folder with --out, or start anew with --no-resume"


class _Facts(BaseModel):
    """What a checkpoint says of its run, as far as predictions need it."""

    model_config = ConfigDict(frozen=True, strict=True)

    config: RunConfig
    in_channels: Count
    num_classes: Count


def train_single(
    dataset: Dataset,
    config: RunConfig,
    seed: int,
    device: torch.device,
    checkpoint_dir: Path,
    *,
    resume: bool = True,
    checkpoint_every: int = 50,
    on_epoch: Callable[[int], None] | None = None,
    tracker: Tracker | None = None,
) -> Run:
    """Trains one run and keeps a checkpoint of it.

    A run that was stopped, at any point and in any way, goes on from its checkpoint
    and ends, on a CPU, with bitwise the weights it would have had.

    Args:
        dataset: The graph, homogeneous.
        config: The settings.
        seed: The run's seed.
        device: Where to train.
        checkpoint_dir: The folder of the checkpoint file.
        resume: Go on from the checkpoint in the folder, if there is one; otherwise
            start anew and overwrite it.
        checkpoint_every: Epochs between checkpoints; there is one at the end anyway.
        on_epoch: Called with each epoch's number, from 1.
        tracker: Takes the run's numbers after every epoch.

    Raises:
        UserError: Nothing can be trained with these arguments, or the folder holds
            the checkpoint of another run or a damaged one.
    """
    if checkpoint_every < 1:
        raise UserError(
            f"checkpoint_every is {checkpoint_every}; give at least 1 epoch"
        )
    device = torch.device(device)
    path = Path(checkpoint_dir) / CHECKPOINT_NAME
    start = time.perf_counter()
    with explain_out_of_memory(config, 1, device):
        group = SeedGroup(task_of(dataset, config, device), config, [seed])
        training = Training(group, config)
        facts: dict[str, Any] = {
            "config": config.model_dump(mode="json"),
            "seed": seed,
            "fingerprint": dataset.fingerprint,
            "in_channels": group.task.in_channels,
            "num_classes": group.task.num_classes,
        }
        if resume and path.exists():
            saved = checkpoint.read(path, _START_ANEW)
            _refuse_another_run(path, saved.facts, facts)
            _refuse_other_state(path, saved.tensors, training)
            training.load_state(saved.tensors)
        else:
            # A folder that cannot be written to is noticed before any work is done.
            checkpoint.write(path, training.state(), facts)

        def after_epoch(epoch: int) -> None:
            if tracker is not None:
                row = training.history[epoch - 1, 0].tolist()
                tracker.log(epoch, dict(zip(COLUMNS, row, strict=True)))
            if on_epoch is not None:
                on_epoch(epoch)

        try:
            while training.epochs_done < config.epochs and not training.all_failed:
                following = training.epochs_done // checkpoint_every + 1
                training.run(until=following * checkpoint_every, on_epoch=after_epoch)
                checkpoint.write(path, training.state(), facts)
        finally:
            if tracker is not None:
                tracker.finish()
        return finished_runs(training, dataset, start)[0]


def predict(
    checkpoint_path: Path, dataset: Dataset, device: torch.device | str = "cpu"
) -> Tensor:
    """The class of every node of a graph, by a checkpoint's selected weights.

    Args:
        checkpoint_path: The checkpoint, or its folder.
        dataset: A graph with as many features per node as the run's had.
        device: Where to compute.

    Returns:
        One class per node, int64, on the CPU.

    Raises:
        UserError: The checkpoint is damaged, of a run that failed or has not begun, or
            does not fit the graph.
    """
    path = Path(checkpoint_path)
    if path.is_dir():
        path = path / CHECKPOINT_NAME
    device = torch.device(device)
    saved = checkpoint.read(path)
    facts = _facts_of(path, saved.facts)
    _refuse_untrained(path, saved.tensors)
    refuse_other_training(dataset, facts.config)
    x = features_of(dataset, facts.config, device)
    if x.size(1) != facts.in_channels:
        raise UserError(
            f"{dataset.name} has {x.size(1)} features per node, but the model of "
            f"{path} was trained on {facts.in_channels}; give a graph with the same "
            "features"
        )
    model = single_model(facts.config, facts.in_channels, facts.num_classes, seed=0)
    state = model.state_dict()
    stacked = {f"best.{name}": value.unsqueeze(0) for name, value in state.items()}
    checkpoint.require_tensors(path, saved.tensors, stacked)
    model.load_state_dict({name: saved.tensors[f"best.{name}"][0] for name in state})
    model.to(device).eval()
    with torch.no_grad():
        logits: Tensor = model(x, graph_of(dataset, device))
    unknown = int((~logits.isfinite().all(dim=-1)).sum())
    if unknown:
        raise UserError(
            f"the model of {path} gives no numbers for {unknown} of {x.size(0)} nodes "
            f"of {dataset.name}; scale its features like those it was trained on"
        )
    return logits.argmax(dim=-1).cpu()


def _facts_of(path: Path, facts: Mapping[str, Any]) -> _Facts:
    try:
        return _Facts.model_validate(facts)
    except ValidationError as error:
        raise UserError(
            f"{path} is not a checkpoint that this version can use "
            f"({first_validation_error(error, _Facts)}); train again with --no-resume"
        ) from error


def _refuse_other_state(
    path: Path, found: Mapping[str, Tensor], training: Training
) -> None:
    wanted = training.state()
    if any(name.startswith("adam.") for name in found):
        for name, parameter in training.group.parameters.items():
            wanted[f"adam.{name}.step"] = torch.zeros(())
            wanted[f"adam.{name}.exp_avg"] = parameter
            wanted[f"adam.{name}.exp_avg_sq"] = parameter
    checkpoint.require_tensors(path, found, wanted)


def _refuse_untrained(path: Path, tensors: Mapping[str, Tensor]) -> None:
    counts = {
        "failed_epoch": torch.zeros(1, dtype=torch.int64),
        "epoch": torch.zeros((), dtype=torch.int64),
    }
    checkpoint.require_tensors(path, tensors, counts)
    failed_epoch = int(tensors["failed_epoch"])
    if failed_epoch:
        raise UserError(
            f"the run of {path} failed at epoch {failed_epoch}, where its loss was not "
            "a finite number; train it again with a lower learning rate"
        )
    if int(tensors["epoch"]) == 0:
        raise UserError(
            f"the run of {path} was stopped before its first epochs were kept; go on "
            "with the `tempergat train` that made it"
        )


def _refuse_another_run(
    path: Path, found: dict[str, Any], wanted: dict[str, Any]
) -> None:
    for name, value in wanted.items():
        seen: Any = found.get(name)
        if seen == value:
            continue
        difference = f"its {name} is {seen!r}, not {value!r}"
        if name == "config" and isinstance(seen, dict):
            name = next(k for k in value if seen.get(k) != value[k])
            difference = f"its {name} is {seen.get(name)!r}, not {value[name]!r}"
        elif name == "fingerprint":
            difference = "its graph or split is not this one"
        raise UserError(f"{path} is of another run: {difference}; {_START_ANEW}")
