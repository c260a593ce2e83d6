"""Memory: how many runs fit at once, what happens when there is too little."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from tempergat.base import UserError, is_out_of_memory
from tempergat.data import Dataset
from tempergat.nn import BACKBONES, METHODS
from tempergat.training.graphs.inputs import types_of
from tempergat.training.metrics import metric_of_settings
from tempergat.training.settings.config import RunConfig

# Parameters of the C library's `mallopt`, and how they are set: no block comes straight
# from the system, nothing is given back, and all threads share what is free.
_MALLOC_SETTINGS = {-3: 2**30, -1: 2**31 - 1, -8: 1}

# Memory a group may take, by kind of device. Constants, not the memory that happens to
# be free, so that a study that is continued cuts its runs into the same groups.
_BUDGET_BYTES = {"cuda": 32 * 2**30, "cpu": 2 * 2**30}
# On a CPU speed is the limit where all runs share their features: beyond about this
# size per tensor, the C library allocates new pages for each, and 50 seeds at once are
# slower than several groups.
_CPU_TENSOR_BYTES = 16 * 2**20

# Further groups would wait for each other: Python runs one thread at a time.
_MOST_AT_ONCE = 3
# On a GPU one group begins or ends, which is work of the CPU, while another one trains.
_AT_ONCE_ON_GPU = 2

_FLOAT_BYTES = 4
# How many tensors of each kind a training step holds at its peak, with room to spare.
_NODE_TENSORS = 8
_EDGE_TENSORS = 4
_FEATURE_TENSORS = 3
_PARAMETER_TENSORS = 6
# Ranking metrics sort the log-odds of all nodes; these and positions have 8 bytes.
_RANKING_TENSORS = 20
# Copies of a run's features that exist at once: before and after dropout.
_OWN_FEATURE_TENSORS = 3


class OutOfMemory(UserError):
    """A device has too little memory to train some runs at once."""

    # Not a mistake of the user: the command exits as it does with failed runs.
    exit_status = 1


@contextmanager
def explain_out_of_memory(
    config: RunConfig, runs: int, device: torch.device
) -> Iterator[None]:
    """Turns running out of memory into a sentence that says what to do.

    Raises:
        OutOfMemory: Memory ran out.
    """
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        what = f"one run of {config.method}"
        if runs > 1:
            what = f"{runs} runs of {config.method} at once"
        if config.training == "full":
            remedy = (
                "train on batches of nodes with --training sampled (add --fanout "
                "10,5 and --batch-size 512 for smaller ones), or use fewer "
                "hidden_channels"
            )
        else:
            remedy = (
                f"use a smaller --batch-size than {config.batch_size} or --fanout than "
                f"{','.join(map(str, config.fanout or ()))}, --eval-batch-size "
                f"{config.batch_size} for sampled evaluation, or fewer hidden_channels"
            )
        raise OutOfMemory(
            f"{device} has too little memory to train {what} with hidden_channels "
            f"{config.hidden_channels}; {remedy}"
        ) from error


def free_memory(device: torch.device) -> None:
    """Releases the memory of a training that failed.

    Call it after the except clause: inside it the error still refers to the tensors.
    """
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def keep_freed_memory() -> None:
    """Has the C library keep freed memory of the CPU, so that it is used again.

    By default it returns large blocks to the system and gets them back for the next
    tensor, page by page: thousands of pages in every epoch. The process then never
    shrinks, so this is for commands and not for a user's own program. Nothing happens
    with a C library other than glibc.
    """
    if not sys.platform.startswith("linux"):
        return
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    for parameter, value in _MALLOC_SETTINGS.items():
        if set_option is not None:
            set_option(parameter, value)


def group_size(
    dataset: Dataset,
    config: RunConfig,
    device: torch.device,
    *,
    own_features: bool = False,
) -> int:
    """How many runs of one method are trained at once, at least 1.

    A fixed function of the graph, the settings and the kind of device. Seeds of a
    user's own module are trained one by one, and so are all in sampled training.

    Args:
        own_features: Whether each run has features of its own, not the graph's.
    """
    if config.source_hash is not None or config.training == "sampled":
        return 1
    kind = torch.device(device).type
    if kind != "cuda" and not own_features:
        rows = int(dataset.data.num_nodes)
        if dataset.edge_feature_names:
            # Layers of gatv2 project the features of every edge.
            rows = max(rows, int(dataset.data.edge_index.size(1)))
        size = _CPU_TENSOR_BYTES // (rows * config.hidden_channels * _FLOAT_BYTES)
        return max(1, size)
    run_bytes = bytes_per_seed(dataset, config)
    if own_features:
        run_bytes += dataset.data.x.numel() * _FLOAT_BYTES * _OWN_FEATURE_TENSORS
    return max(1, _BUDGET_BYTES.get(kind, _BUDGET_BYTES["cpu"]) // run_bytes)


def groups_at_once(
    dataset: Dataset, config: RunConfig, runs: int, device: torch.device
) -> int:
    """How many groups like this one are trained side by side, at least 1.

    More than one for small graphs on a CPU, where one group leaves cores idle. On a GPU
    the epochs of one group keep the device busy (Cora's 50 seeds for 97 % of the time,
    Pubmed's for all of it), but not its beginning and its end; there two groups are
    trained if they fit half of the memory.
    """
    is_typed = dataset.is_heterogeneous
    if config.source_hash is not None or config.training != "full" or is_typed:
        return 1
    if device.type == "cuda":
        needed = _AT_ONCE_ON_GPU * runs * bytes_per_seed(dataset, config)
        fits = needed <= torch.cuda.get_device_properties(device).total_memory // 2
        return _AT_ONCE_ON_GPU if fits else 1
    if device.type != "cpu":
        return 1
    tensor = int(dataset.data.x.size(0)) * config.hidden_channels * _FLOAT_BYTES
    is_small = runs * tensor <= _CPU_TENSOR_BYTES
    return min(_MOST_AT_ONCE, torch.get_num_threads()) if is_small else 1


def bytes_per_seed(dataset: Dataset, config: RunConfig) -> int:
    """An estimate of the memory that one more seed in a group takes."""
    method = METHODS[config.method]
    hidden = config.hidden_channels
    nodes, edges = int(dataset.data.num_nodes), int(dataset.data.num_edges)
    feature_values, weights = 0, 0
    if dataset.target is None:
        inputs = int(dataset.data.x.size(1))
        if config.feature_dropout > 0.0:
            x = dataset.data.x
            # Scaled columns have no zeros to leave out.
            stored = x.numel() if config.scale_features else stored_elements(x)
            feature_values = stored * _FEATURE_TENSORS
    else:
        inputs = config.shared_channels or hidden
        # All nodes in the shared space, and its maps and tables.
        feature_values = nodes * inputs * _NODE_TENSORS
        weights = inputs * sum(
            kind.num_features or kind.num_nodes for kind in types_of(dataset) or ()
        )
    projections = BACKBONES[method.backbone].num_projections + (method.gate is not None)
    node_values = nodes * hidden * config.num_layers * (_NODE_TENSORS + projections)
    edge_values = edges * config.heads * config.num_layers * _EDGE_TENSORS
    if dataset.edge_feature_names:
        edge_values += edges * hidden * config.num_layers * _EDGE_TENSORS
    weights += (inputs + hidden * (config.num_layers - 1)) * hidden * projections
    values = node_values + edge_values + feature_values + weights * _PARAMETER_TENSORS
    if metric_of_settings(config.metric).ranks:
        values += nodes * dataset.predicted.width * _RANKING_TENSORS
    return values * _FLOAT_BYTES


def stored_elements(x: Tensor) -> int:
    """The elements of features that are stored."""
    return int(x.values().numel() if x.layout == torch.sparse_csr else x.numel())
