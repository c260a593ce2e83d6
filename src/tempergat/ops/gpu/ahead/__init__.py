"""Kernels are compiled before they are needed, in background threads.

Triton is imported by the background threads too, so that the caller does not wait for
it.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import threading
import time
from typing import NamedTuple

import torch

OPS = ("gat", "gatv2", "dropout", "aggregate", "outer")
# How long the end of a process waits for threads that still look for kernels: to stop
# them inside an import or an operation of torch could crash.
_LAST_SECONDS = 10.0
_requested: set[tuple[Coming, torch.device]] = set()
_recorders: list[threading.Thread] = []
_listing = threading.Lock()
_process_ends = threading.Event()


class Coming(NamedTuple):
    """Coming calls of an op, as far as the choice of kernels depends on them.

    Attributes:
        op: "gat" or "gatv2", with all that a layer of it needs for a step; "dropout",
            of whole tensors; "aggregate", sparse features times weights; or "outer",
            the gradient of weights.
        heads: Heads of a model; for "outer" the rows of a weight.
        channels: Channels per head; columns of the tensor for "dropout"; of a weight
            the rows for "aggregate" and the columns for "outer".
        models: How many models are trained at once (`vmap`).
        nodes: Number of nodes; GATv2 reads tables in slices if they are large.
        dtype: The type of the features.
        dropout: Whether attention weights are dropped.
        gate: Whether the layer has a feature gate.
        edge: Whether edges have a part in the logits.
        learnt: Whether the layer learns one temperature of all its heads.
        weights: Whether attention weights are returned.
        training: Whether gradients are taken.
    """

    op: str
    heads: int
    channels: int
    models: int = 1
    nodes: int = 1
    dtype: torch.dtype = torch.float32
    dropout: bool = False
    gate: bool = False
    edge: bool = False
    learnt: bool = False
    weights: bool = False
    training: bool = True


def is_requested(coming: Coming, device: torch.device) -> bool:
    """Whether the same was asked for before."""
    return (coming, device) in _requested


def request(coming: Coming, device: torch.device, number: int) -> None:
    """Starts to compile what the calls need.

    Args:
        coming: The calls.
        device: The device as it was asked for.
        number: Its number.
    """
    _requested.add((coming, device))
    recorder = threading.Thread(target=_record, args=(coming, number), daemon=True)
    recorder.start()
    with _listing:
        running = [thread for thread in _recorders if thread.is_alive()]
        _recorders[:] = [*running, recorder]


def _record(coming: Coming, number: int) -> None:
    # What fails here fails again in the call itself, which reports it.
    with contextlib.suppress(Exception):
        recording = importlib.import_module(f"{__name__}.recording")
        if not _process_ends.is_set():
            recording.compile_kernels(coming, number)


@atexit.register
def _end() -> None:
    """Waits a little for the threads of requests."""
    _process_ends.set()
    last = time.monotonic() + _LAST_SECONDS
    for thread in list(_recorders):
        # In a forked process they are not alive.
        thread.join(max(0.0, last - time.monotonic()))
