"""A trained model with its preprocessing, and predictions from it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict, ValidationError
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from tempergat.base import UserError, first_validation_error
from tempergat.data import (
    Dataset,
    GraphInput,
    ReadOptions,
    as_dataset,
    normalize_rows,
    to_dense,
    warn_of_notes,
)
from tempergat.nn import temperature_of
from tempergat.training.config import Count, RunConfig
from tempergat.training.hardware import choose_device
from tempergat.training.loop import COLUMNS
from tempergat.training.record import LayerRecord, Run
from tempergat.training.run import failure_reason, scores_by_rule
from tempergat.training.seeds import State, single_model
from tempergat.training.single import checkpoint
from tempergat.training.task import features_of, graph_of, refuse_other_training
from tempergat.training.user_modules import (
    BuildModule,
    build_user_module,
    explain_errors,
    require_logits,
    tensors_of,
)

# The tensors of a checkpoint that record a run's progress.
_PROGRESS = ("epoch", "failed_epoch", "history")


class Facts(BaseModel):
    """What a checkpoint says about its run, besides the tensors.

    Checkpoints of version 0.1.0 lack the fields that have a default.
    """

    model_config = ConfigDict(frozen=True, strict=True)

    config: RunConfig
    seed: int
    fingerprint: str
    in_channels: Count
    num_classes: Count
    dataset: str = ""
    device: str = "cpu"
    versions: dict[str, str] = {}
    gate_means: list[float | None] = []
    time_s: float = 0.0


class TrainedModel(nn.Module):
    """A trained node classifier that prepares its input as in training.

    Made by `tempergat.train` and `tempergat.load_model`.

    Args:
        module: The classifier, with the weights of the selected epoch.
        facts: The settings and the origin of its run.
        progress: The tensors ``epoch``, ``failed_epoch`` and ``history`` of the run.
        run: The record of the run.

    Attributes:
        module: The classifier without the preprocessing.
        run: The record of the run: scores, selected epoch, learned temperatures.
    """

    def __init__(
        self, module: nn.Module, facts: Facts, progress: Mapping[str, Tensor], run: Run
    ) -> None:
        super().__init__()
        self.module = module
        self.run = run
        self._facts = facts
        self._progress = {name: progress[name].detach().cpu() for name in _PROGRESS}
        self.eval()

    @property
    def config(self) -> RunConfig:
        """The settings of the run."""
        return self._facts.config

    def forward(self, x: Tensor, edge_index: Any) -> Tensor:
        """Class scores (logits) of all nodes, [num_nodes, num_classes].

        Args:
            x: Node features as in the dataset; they are normalised here if the
                settings of the run say so.
            edge_index: The edges.
        """
        if self.config.normalize_features:
            x = normalize_rows(x)
        if self.config.source_hash is not None:
            x = to_dense(x)
        logits: Tensor = self.module(x.float(), edge_index)
        return logits

    def predict(
        self, data: GraphInput, read_options: ReadOptions | None = None
    ) -> Tensor:
        """The class of every node, int64, on the CPU.

        Args:
            data: A PyG ``Data``, a dataset, or the name or path of a graph, with as
                many features per node as the training graph. It needs no labels.
            read_options: How a user graph is read; the defaults when left out.

        Raises:
            UserError: The graph does not fit the model, or the run has failed.
        """
        return self._logits(data, read_options).argmax(dim=-1).cpu()

    def predict_proba(
        self, data: GraphInput, read_options: ReadOptions | None = None
    ) -> Tensor:
        """The probability of every class for every node, on the CPU.

        Args:
            data: As in `predict`.
            read_options: As in `predict`.

        Returns:
            [num_nodes, num_classes]; every row sums to 1.

        Raises:
            UserError: The graph does not fit the model, or the run has failed.
        """
        return self._logits(data, read_options).softmax(dim=-1).cpu()

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes a checkpoint that `tempergat.load_model` reads.

        Args:
            path: The file, or an existing folder for a file of the usual name. The
                file is replaced as a whole or not at all.

        Returns:
            The path of the file.

        Raises:
            UserError: The file cannot be written.
        """
        file = checkpoint.file_at(path)
        weights = {
            f"best.{name}": value.unsqueeze(0)
            for name, value in tensors_of(self.module).items()
        }
        facts = self._facts.model_dump(mode="json")
        checkpoint.write(file, {**weights, **self._progress}, facts)
        return file

    def __repr__(self) -> str:
        facts, run = self._facts, self.run
        outcome = f"failed at epoch {run.failed_epoch}"
        if run.status == "done":
            test = run.scores[self.config.selection].test
            outcome = f"test score {100 * test:.2f} % at epoch {run.selected_epoch}"
        sizes = f"{facts.in_channels} features, {facts.num_classes} classes"
        return f"TrainedModel({self.config.method}, {sizes}, {outcome})"

    @torch.no_grad()
    def _logits(self, data: GraphInput, read_options: ReadOptions | None) -> Tensor:
        if self.run.status == "failed":
            raise UserError(_failed("the run", self.run.failed_epoch))
        facts = self._facts
        dataset = as_dataset(data, labelled=False, options=read_options)
        if not isinstance(data, Dataset):
            warn_of_notes(dataset)
        refuse_other_training(dataset, self.config)
        features = int(dataset.data.x.size(1))
        if features != facts.in_channels:
            raise UserError(
                f"{dataset.name} has {features} features per node, but the model was "
                f"trained on {facts.in_channels}; give a graph with the same features"
            )
        self.eval()
        logits = self._call(dataset)
        unknown = int((~logits.isfinite().all(dim=-1)).sum())
        if unknown:
            raise UserError(
                f"the model gives no finite scores for {unknown} of {logits.size(0)} "
                f"nodes of {dataset.name}; scale its features like those it was "
                "trained on"
            )
        return logits

    def _call(self, dataset: Dataset) -> Tensor:
        device = next(self.module.parameters()).device
        x = features_of(dataset, self.config, device)
        if self.config.source_hash is None:
            logits: Tensor = self.module(x, graph_of(dataset, device))
            return logits
        method, expected = self.config.method, [x.size(0), self._facts.num_classes]
        with explain_errors(method):
            found = self.module(x, dataset.data.edge_index.long().to(device))
        return require_logits(method, found, expected)


def load_model(
    path: str | os.PathLike[str],
    *,
    device: str | torch.device = "auto",
    build: BuildModule | None = None,
) -> TrainedModel:
    """Reads a model from a checkpoint of `tempergat.train` or `TrainedModel.save`.

    Args:
        path: The checkpoint, or its folder.
        device: `auto`, `cpu`, `cuda` or `cuda:1`.
        build: For a user's own module: the callable it was trained with.

    Raises:
        UserError: The file is missing, damaged or not a checkpoint, its run has failed
            or not begun, or `build` is missing.
    """
    file = checkpoint.file_at(path)
    place = choose_device(device)
    saved = checkpoint.read(file)
    facts = _facts_of(file, saved.facts)
    _refuse_untrained(file, facts, saved.tensors)
    weights = {
        name.removeprefix("best."): value
        for name, value in saved.tensors.items()
        if name.startswith("best.")
    }
    module = _empty_module(file, facts, build)
    found = {f"best.{name}": value for name, value in weights.items()}
    wanted = {f"best.{name}": v.unsqueeze(0) for name, v in tensors_of(module).items()}
    checkpoint.require_tensors(file, found, wanted)
    with torch.no_grad():
        for name, value in tensors_of(module).items():
            value.copy_(weights[name][0])
    run = _run_of(facts, saved.tensors)
    return TrainedModel(module.to(place), facts, saved.tensors, run)


def predict(
    model: TrainedModel | str | os.PathLike[str],
    graph: GraphInput,
    device: str | torch.device = "auto",
    read_options: ReadOptions | None = None,
) -> Tensor:
    """The class of every node of a graph.

    Args:
        model: A trained model, a checkpoint, or its folder.
        graph: A PyG ``Data``, a dataset, or the name or path of a graph, with as many
            features per node as the training graph. It needs no labels.
        device: Where to compute with a checkpoint; a model stays on its device.
        read_options: How a user graph is read; the defaults when left out.

    Returns:
        One class per node, int64, on the CPU.

    Raises:
        UserError: The checkpoint is damaged, or of a run that failed or has not begun,
            or the graph does not fit the model.
    """
    if not isinstance(model, TrainedModel):
        model = load_model(model, device=device)
    return model.predict(graph, read_options)


def _empty_module(file: Path, facts: Facts, build: BuildModule | None) -> nn.Module:
    config = facts.config
    sizes = (facts.in_channels, facts.num_classes)
    if config.source_hash is None:
        return single_model(config, *sizes, seed=0)
    if build is None:
        raise UserError(
            f"{file} holds your own module {config.method}; give load_model the "
            "callable that builds it: build=..."
        )
    module = build_user_module(build, config.method, *sizes, seed=0)
    if any(is_lazy(parameter) for parameter in module.parameters()):
        # Lazy layers make their weights at the first call.
        x, edge_index = torch.zeros(1, sizes[0]), torch.zeros(2, 1, dtype=torch.int64)
        with torch.no_grad(), explain_errors(config.method):
            module.eval()(x, edge_index)
    return module


def _run_of(facts: Facts, tensors: State) -> Run:
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


def _temperatures(tensors: State, prefix: str) -> tuple[float, ...]:
    """The temperature of each layer, averaged over heads."""
    names = (f"{prefix}convs.{layer}.theta" for layer in range(len(tensors)))
    thetas = [tensors[name][0] for name in names if name in tensors]
    return tuple(float(temperature_of(theta).mean()) for theta in thetas)


def _facts_of(path: Path, facts: Mapping[str, Any]) -> Facts:
    try:
        return Facts.model_validate(facts)
    except ValidationError as error:
        raise UserError(
            f"{path} is not a checkpoint that this version can use "
            f"({first_validation_error(error, Facts)}); train again with --no-resume"
        ) from error


def _refuse_untrained(path: Path, facts: Facts, tensors: Mapping[str, Tensor]) -> None:
    shape = (facts.config.epochs, 1, len(COLUMNS))
    progress = {
        "failed_epoch": torch.zeros(1, dtype=torch.int64),
        "epoch": torch.zeros((), dtype=torch.int64),
        "history": torch.empty(shape, dtype=torch.float64, device="meta"),
    }
    checkpoint.require_tensors(path, tensors, progress)
    failed_epoch = int(tensors["failed_epoch"])
    if failed_epoch:
        raise UserError(_failed(f"the run of {path}", failed_epoch))
    if int(tensors["epoch"]) == 0:
        raise UserError(
            f"the run of {path} was stopped before its first checkpoint; continue it "
            "with the `tempergat train` that made it"
        )


def _failed(what: str, epoch: int | None) -> str:
    return (
        f"{what} failed at epoch {epoch}, where its loss was not a finite number; "
        "train it again with a lower learning rate"
    )
