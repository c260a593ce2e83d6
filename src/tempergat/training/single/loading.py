"""Models from checkpoints, and predictions from them."""

from __future__ import annotations

import os

import torch
from torch import Tensor

from tempergat.data import GraphInput, ReadOptions
from tempergat.training.hardware.devices import choose_device
from tempergat.training.single import checkpoint
from tempergat.training.single.facts import read_facts
from tempergat.training.single.model import TrainedModel
from tempergat.training.single.publishing import model_file
from tempergat.training.single.restoring import (
    refuse_untrained,
    require_progress,
    restored_module,
    run_of,
)
from tempergat.training.user_methods.user_code import BuildModule


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
    facts = read_facts(file, saved.facts)
    require_progress(file, saved.tensors, facts.config)
    refuse_untrained(file, saved.tensors)
    module = restored_module(file, facts, saved.tensors, build)
    run = run_of(facts, saved.tensors)
    return TrainedModel(module.to(place), facts, saved.tensors, run)


def from_pretrained(
    source: str | os.PathLike[str],
    *,
    revision: str | None = None,
    token: str | None = None,
    device: str | torch.device = "auto",
    build: BuildModule | None = None,
) -> TrainedModel:
    """Reads a model from a folder or from the Hugging Face Hub.

    Of a repository only ``model.safetensors`` is downloaded, once; it holds no code.
    The Hub needs `pip install 'tempergat[hub]'`.

    Args:
        source: A folder of `TrainedModel.save_pretrained` or `tempergat.train`, or a
            repository of `TrainedModel.push_to_hub`, as ``user/name``.
        revision: A branch, tag or commit of the repository.
        token: A token for a private repository; None for that of ``hf auth login``.
        device: As for `load_model`.
        build: As for `load_model`.

    Raises:
        UserError: There is no such folder or repository, huggingface_hub is not
            installed, or the file is no model, as for `load_model`.
    """
    file = model_file(source, revision, token)
    return load_model(file, device=device, build=build)


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
