"""A model and the record of its run, from the content of a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from tempergat.base import UserError, one_line
from tempergat.nn import temperature_of
from tempergat.training.initial_weights import built_model, single_model
from tempergat.training.loop import COLUMNS
from tempergat.training.record import LayerRecord, Run
from tempergat.training.run import failure_reason, scores_by_rule
from tempergat.training.seeds import State
from tempergat.training.settings.config import RunConfig
from tempergat.training.single import checkpoint
from tempergat.training.single.facts import Facts
from tempergat.training.task import SPLITS
from tempergat.training.user_methods.user_code import (
    BuildModule,
    build_user_module,
    explain_errors,
    taken_edge_inputs,
    tensors_of,
)


def restored_module(
    file: Path, facts: Facts, tensors: Mapping[str, Tensor], build: BuildModule | None
) -> nn.Module:
    """The module of a run with the weights of its selected epoch, on the CPU.

    Args:
        file: The checkpoint, for error messages.
        facts: Its facts.
        tensors: Its tensors.
        build: For a user's own module: the callable it was trained with.

    Raises:
        UserError: The weights do not fit the settings, or `build` is missing.
    """
    if facts.config.source_hash is None:
        # The sizes in a file may be those of a model that no memory can hold.
        _require_weights(file, _module_without_memory(file, facts), tensors)
    module = _empty_module(file, facts, build)
    _require_weights(file, module, tensors)
    with torch.no_grad():
        for name, value in tensors_of(module).items():
            value.copy_(tensors[f"best.{name}"][0])
    return module


def run_of(facts: Facts, tensors: State) -> Run:
    """The record of a run, as far as it is in the checkpoint."""
    epoch, failed_epoch = int(tensors["epoch"]), int(tensors["failed_epoch"])
    history = tensors["history"][:epoch, 0].numpy()
    outcome: dict[str, Any]
    if failed_epoch:
        reason = failure_reason(history[failed_epoch - 1], failed_epoch)
        outcome = {"status": "failed", "failed_epoch": failed_epoch, "reason": reason}
    else:
        outcome = {
            "scores": scores_by_rule(history),
            "selected": LayerRecord(
                _temperatures(tensors, "best."),
                tuple(float("nan") if g is None else g for g in facts.gate_means),
            ),
            "last": LayerRecord(_temperatures(tensors, "current.")),
            "confusion": facts.confusion and tuple(map(tuple, facts.confusion)),
        }
    return Run(
        dataset=facts.dataset,
        fingerprint=facts.fingerprint,
        method=facts.config.method,
        seed=facts.seed,
        config=facts.config.model_dump(mode="json"),
        time_s=facts.time_s,
        device=facts.device,
        versions=facts.versions,
        **outcome,
    )


def require_progress(
    path: Path, tensors: Mapping[str, Tensor], config: RunConfig
) -> None:
    """Refuses a checkpoint whose record of the epochs cannot be that of a run.

    Raises:
        UserError: A tensor is missing, has another shape or type, counts epochs that
            the run does not have, or holds scores that are not fractions.
    """
    shape = (config.epochs, 1, len(COLUMNS))
    progress = {
        "failed_epoch": torch.zeros(1, dtype=torch.int64),
        "epoch": torch.zeros((), dtype=torch.int64),
        "history": torch.empty(shape, dtype=torch.float64, device="meta"),
    }
    checkpoint.require_tensors(path, tensors, progress)
    epoch, failed_epoch = int(tensors["epoch"]), int(tensors["failed_epoch"])
    for name, value, most in (
        ("epoch", epoch, config.epochs),
        ("failed_epoch", failed_epoch, epoch),
    ):
        if not 0 <= value <= most:
            raise UserError(
                f"{path} says that its {name} is {value}, which is not from 0 to "
                f"{most}; {checkpoint.TRAIN_AGAIN}"
            )
    first_score = COLUMNS.index(SPLITS[0])
    scores = tensors["history"][:epoch, 0, first_score:]
    if not failed_epoch and not ((scores >= 0.0) & (scores <= 1.0)).all():
        raise UserError(
            f"{path} holds scores that are not from 0 to 1; {checkpoint.TRAIN_AGAIN}"
        )


def refuse_untrained(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Refuses the checkpoint of a run that has failed or not begun.

    Raises:
        UserError: The run has no weights to predict with.
    """
    failed_epoch = int(tensors["failed_epoch"])
    if failed_epoch:
        raise UserError(failed_run(f"the run of {path}", failed_epoch))
    if int(tensors["epoch"]) == 0:
        raise UserError(
            f"the run of {path} was stopped before its first checkpoint; continue it "
            "with the `tempergat train` that made it"
        )


def failed_run(what: str, epoch: int | None) -> str:
    """The message that a run failed."""
    return (
        f"{what} failed at epoch {epoch}, where its loss was not a finite number; "
        "train it again with a lower learning rate"
    )


def _require_weights(
    file: Path, module: nn.Module, tensors: Mapping[str, Tensor]
) -> None:
    wanted = {f"best.{name}": v.unsqueeze(0) for name, v in tensors_of(module).items()}
    checkpoint.require_tensors(file, tensors, wanted)


def _module_without_memory(file: Path, facts: Facts) -> nn.Module:
    sizes = (facts.in_channels, facts.num_classes)
    try:
        with torch.device("meta"):
            return built_model(facts.config, *sizes, facts.edge_dim, facts.types)
    except (RuntimeError, ValueError) as error:
        raise UserError(
            f"{file} has settings that no model can be built with: "
            f"{one_line(str(error), 200)}; {checkpoint.TRAIN_AGAIN}"
        ) from error


def _empty_module(file: Path, facts: Facts, build: BuildModule | None) -> nn.Module:
    config = facts.config
    sizes = (facts.in_channels, facts.num_classes)
    if config.source_hash is None:
        return single_model(config, *sizes, 0, facts.edge_dim, facts.types)
    if build is None:
        raise UserError(
            f"{file} holds your own module {config.method}; load it in Python, with "
            "the callable that builds it: load_model(path, build=...)"
        )
    module = build_user_module(build, config.method, *sizes, seed=0)
    if any(is_lazy(parameter) for parameter in module.parameters()):
        # Lazy layers make their weights at the first call.
        x, edge_index = torch.zeros(1, sizes[0]), torch.zeros(2, 1, dtype=torch.int64)
        edges: dict[str, Tensor] = {}
        if facts.edge_feature_names:
            edges["edge_attr"] = torch.zeros(1, len(facts.edge_feature_names))
        if facts.edge_weight_name is not None:
            edges["edge_weight"] = torch.ones(1)
        with torch.no_grad(), explain_errors(config.method):
            module.eval()(x, edge_index, **taken_edge_inputs(module, edges))
    return module


def _temperatures(tensors: State, prefix: str) -> tuple[float, ...]:
    """The temperature of each layer, averaged over heads."""
    names = (f"{prefix}convs.{layer}.theta" for layer in range(len(tensors)))
    thetas = [tensors[name][0] for name in names if name in tensors]
    return tuple(float(temperature_of(theta).mean()) for theta in thetas)
