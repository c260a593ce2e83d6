"""Memory: what happens when there is too little, and what is kept for later use."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from tempergat.base import UserError, is_out_of_memory
from tempergat.training.settings.config import RunConfig

# Parameters of the C library's `mallopt`, and how they are set: no block comes straight
# from the system, nothing is given back, and all threads share what is free.
_MALLOC_SETTINGS = {-3: 2**30, -1: 2**31 - 1, -8: 1}


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
