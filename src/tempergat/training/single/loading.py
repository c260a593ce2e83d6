"""Trained models from checkpoints, and predictions from them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from tempergat.base import UserError, one_line
from tempergat.data import GraphInput, ReadOptions
from tempergat.training.devices.choice import choose_device
from tempergat.training.metrics import metric_of_settings
from tempergat.training.record import LayerRecord, Run
from tempergat.training.results import scores_by_rule, temperatures_of
from tempergat.training.runs.models import State, load_tensors, single_model
from tempergat.training.runs.user_modules import (
    BuildModule,
    build_user_module,
    call_user_module,
    explain_errors,
)
from tempergat.training.single import checkpoint
from tempergat.training.single.metadata import Metadata, read_metadata
from tempergat.training.single.model import TrainedModel


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
    tensors, values = checkpoint.read(file)
    metadata = read_metadata(file, values)
    checkpoint.require_progress(file, tensors, metadata.config)
    what = f"the run of {file}"
    checkpoint.refuse_failed(what, int(tensors["failed_epoch"]))
    if int(tensors["epoch"]) == 0:
        raise UserError(
            f"{what} was stopped before its first checkpoint; continue it with the "
            "`tempergat train` that made it"
        )
    module = _restored_module(file, metadata, tensors, build)
    run = _run_of(metadata, tensors)
    return TrainedModel(module.to(place), metadata, tensors, run)


def predict(
    model: TrainedModel | str | os.PathLike[str],
    graph: GraphInput,
    device: str | torch.device = "auto",
    read_options: ReadOptions | None = None,
) -> Tensor:
    """The class of every node of a graph.

    Args:
        model: A trained model, a checkpoint, or its folder.
        graph: A PyG ``Data``, a dataset, or the name or path of a graph with the
            features of the training graph, which are matched by name. It needs no
            labels.
        device: Where to compute with a checkpoint; a model stays on its device.
        read_options: How a user graph is read, where it differs from the training
            graph.

    Returns:
        One class per node, int64, on the CPU. ``TrainedModel.class_names`` has the
        word of each class.

    Raises:
        UserError: The checkpoint is damaged, or of a run that failed or has not begun,
            or the graph does not fit the model.
    """
    if not isinstance(model, TrainedModel):
        model = load_model(model, device=device)
    return model.predict(graph, read_options)


def _restored_module(
    file: Path,
    metadata: Metadata,
    tensors: Mapping[str, Tensor],
    build: BuildModule | None,
) -> nn.Module:
    """The module of a run with the weights of its selected epoch, on the CPU.

    Raises:
        UserError: The weights do not fit the settings, or `build` is missing.
    """
    module: nn.Module
    if metadata.config.source_hash is None:
        sizes = (metadata.in_channels, metadata.predicted.width)
        facts = (metadata.edge_dim, metadata.node_types)
        try:
            # The sizes in a file may be those of a model that no memory can hold.
            empty = single_model(metadata.config, *sizes, None, *facts)
        except (RuntimeError, UserError) as error:
            raise UserError(
                f"{file} has settings that no model can be built with: "
                f"{one_line(str(error), 200)}; {checkpoint.TRAIN_AGAIN}"
            ) from error
        checkpoint.require_tensors(file, tensors, checkpoint.weights_of(empty))
        module = single_model(metadata.config, *sizes, 0, *facts)
    else:
        module = _user_module(file, metadata, build)
    checkpoint.require_tensors(file, tensors, checkpoint.weights_of(module))
    load_tensors(module, _part(tensors, "best."))
    return module


def _part(tensors: Mapping[str, Tensor], prefix: str) -> State:
    """The tensors whose names begin with a prefix, by their names without it."""
    found = {k: v for k, v in tensors.items() if k.startswith(prefix)}
    return {name.removeprefix(prefix): value for name, value in found.items()}


def _run_of(metadata: Metadata, tensors: State) -> Run:
    """The record of a run that has not failed, as far as it is in the checkpoint."""
    history = tensors["history"][: int(tensors["epoch"]), 0].numpy()
    best, current = (
        tuple(temperatures_of(_part(tensors, prefix), torch.empty(1, 0))[0].tolist())
        for prefix in ("best.", "current.")
    )
    gate_means = (float("nan") if g is None else g for g in metadata.gate_means)
    return Run(
        dataset=metadata.dataset,
        fingerprint=metadata.fingerprint,
        method=metadata.config.method,
        seed=metadata.seed,
        config=metadata.config.model_dump(mode="json"),
        scores=scores_by_rule(history, metric_of_settings(metadata.config.metric)),
        selected=LayerRecord(best, tuple(gate_means)),
        last=LayerRecord(current),
        time_s=metadata.time_s,
        device=metadata.device,
        versions=metadata.versions,
        confusion=metadata.confusion_rows,
    )


def _user_module(
    file: Path, metadata: Metadata, build: BuildModule | None
) -> nn.Module:
    """A user's module with any weights."""
    method, sizes = (
        metadata.config.method,
        (metadata.in_channels, metadata.predicted.width),
    )
    if build is None:
        raise UserError(
            f"{file} holds your own module {method}; load it in Python, with "
            "the callable that builds it: load_model(path, build=...)"
        )
    module = build_user_module(build, method, *sizes, seed=0)
    if any(is_lazy(parameter) for parameter in module.parameters()):
        # Lazy layers make their weights at the first call.
        x, edge_index = torch.zeros(1, sizes[0]), torch.zeros(2, 1, dtype=torch.int64)
        edges: dict[str, Tensor] = {}
        if metadata.edge_feature_names:
            edges["edge_attr"] = torch.zeros(1, len(metadata.edge_feature_names))
        if metadata.edge_weight_name is not None:
            edges["edge_weight"] = torch.ones(1)
        with torch.no_grad(), explain_errors(method):
            call_user_module(method, module.eval(), x, edge_index, edges, sizes[1])
    return module
