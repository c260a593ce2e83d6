"""The device to train on: its choice, its name, and its kernels compiled ahead."""

from __future__ import annotations

from typing import Any

import torch

from tempergat.base import UserError
from tempergat.data import Dataset
from tempergat.nn import AttentionLayer
from tempergat.ops import compile_ahead
from tempergat.training.devices.memory import stored_elements
from tempergat.training.graphs.inputs import are_sparse
from tempergat.training.runs.models import single_model
from tempergat.training.settings.config import RunConfig


def choose_device(name: str | torch.device, argument: str = "device") -> torch.device:
    """Turn a device's name into a device that exists.

    Args:
        name: `auto`, `cpu`, `cuda` or `cuda:1`; `auto` is the first CUDA device, or
            the CPU where there is none.
        argument: Name of the argument in error messages.

    Raises:
        UserError: The name is not one of these, or torch does not see the device.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise UserError(f"{argument} is {str(name)!r}; choose auto, cpu or cuda")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UserError(
            f"{argument} is {str(name)!r}, but torch {torch.__version__} sees "
            f"{torch.cuda.device_count()} CUDA devices; choose cpu, or see "
            "`tempergat doctor`"
        )
    return device


def device_name(device: torch.device) -> str:
    """`cpu`, or a GPU's kind and name: `cuda (NVIDIA H200)`."""
    if device.type == "cuda":
        return f"cuda ({torch.cuda.get_device_name(device)})"
    return str(device)


def compile_kernels(
    dataset: Dataset, config: RunConfig, runs: int, device: torch.device
) -> None:
    """Starts to compile the kernels of runs of an attention method, trained at once.

    Returns at once, and does nothing on a CPU. Training waits for the kernels that it
    needs first and compiles what is missing.
    """
    own_module = config.source_hash is not None
    if device.type != "cuda" or own_module or dataset.is_heterogeneous:
        return
    nodes = int(dataset.data.num_nodes)
    # The kernels do not depend on the number of features.
    model = single_model(config, 1, dataset.predicted.width, seed=0)
    layers = [
        (layer.attention, layer)
        for layer in model.convs
        if isinstance(layer, AttentionLayer)
    ]
    if runs > 1 and layers:
        _compile_products(dataset, config, runs, device)
    for training in (True, False):
        for op, layer in layers:
            compile_ahead(
                op,
                layer.heads,
                layer.out_channels,
                models=runs,
                nodes=nodes,
                dropout=training and config.attention_dropout > 0.0,
                edge=bool(dataset.edge_feature_names),
                learnt=layer.theta is not None,
                training=training,
                device=device,
            )


def _compile_products(
    dataset: Dataset, config: RunConfig, runs: int, device: torch.device
) -> None:
    """Products with weights, and dropout of features, as far as they are kernels."""
    x, hidden = dataset.data.x, config.hidden_channels
    facts: dict[str, Any] = {"models": runs, "device": device}
    if are_sparse(x):
        compile_ahead("aggregate", 1, hidden, **facts)
    if config.feature_dropout > 0.0:
        first = stored_elements(x) if are_sparse(x) else int(x.size(1))
        for columns in (first, hidden):
            compile_ahead("dropout", 1, columns, **facts)
    nodes = int(dataset.data.num_nodes)
    compile_ahead("outer", dataset.predicted.width, hidden, nodes=nodes, **facts)
