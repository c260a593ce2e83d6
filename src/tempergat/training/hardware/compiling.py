"""GPU kernels of a group of runs are compiled before the group is trained."""

from __future__ import annotations

import torch

from tempergat.data import Dataset
from tempergat.nn import AttentionLayer
from tempergat.ops import compile_ahead
from tempergat.training.initial_weights import single_model
from tempergat.training.settings import RunConfig


def compile_kernels(
    dataset: Dataset, config: RunConfig, runs: int, device: torch.device
) -> None:
    """Starts to compile the attention kernels of runs that are trained at once.

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
    for training in (True, False):
        for layer in model.convs:
            if not isinstance(layer, AttentionLayer) or layer.attention is None:
                continue
            compile_ahead(
                layer.attention,
                layer.heads,
                layer.out_channels,
                models=runs,
                nodes=nodes,
                dropout=training and config.attention_dropout > 0.0,
                edge=bool(dataset.edge_feature_names),
                training=training,
                device=device,
            )
