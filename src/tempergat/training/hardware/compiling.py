"""GPU kernels of a group of runs are compiled before the group is trained."""

from __future__ import annotations

from typing import Any

import torch

from tempergat.data import Dataset
from tempergat.nn import AttentionLayer
from tempergat.ops import compile_ahead
from tempergat.training.hardware.grouping import stored_elements
from tempergat.training.initial_weights import single_model
from tempergat.training.settings.config import RunConfig
from tempergat.training.task import are_sparse


def compile_kernels(
    dataset: Dataset, config: RunConfig, runs: int, device: torch.device
) -> None:
    """Starts to compile the kernels of runs of an attention method, trained at once.

    Returns at once, and does nothing on a CPU. Training waits for the kernels that it
    needs first and compiles what is missing.

    Args:
        dataset: The graph.
        config: The settings of the runs.
        runs: How many runs are trained at once.
        device: Where they will be trained.
    """
    own_module = config.source_hash is not None
    if device.type != "cuda" or own_module or dataset.is_heterogeneous:
        return
    nodes = int(dataset.data.num_nodes)
    # The kernels do not depend on the number of features.
    model = single_model(config, 1, dataset.num_classes, seed=0)
    layers = [
        (layer.attention, layer)
        for layer in model.convs
        if isinstance(layer, AttentionLayer) and layer.attention is not None
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
    compile_ahead("outer", dataset.num_classes, hidden, nodes=nodes, **facts)
