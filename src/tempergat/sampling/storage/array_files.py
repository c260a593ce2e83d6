"""Arrays in ``.npy`` files, mapped into memory: nothing is read until it is used."""

from __future__ import annotations

import ctypes
import mmap
import os
import warnings
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from tempergat.base import UserError, available_bytes


def open_array(path: str | os.PathLike[str]) -> Tensor:
    """Maps a ``.npy`` file into memory, in a time that does not depend on its size.

    The tensor must not be written to: its memory is read-only, so that the system
    reserves none for it and the file may be larger than memory.

    Raises:
        UserError: The file cannot be read, is no array of numbers, or is shorter than
            its header says.
    """
    file = Path(path)
    try:
        array = np.load(file, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror or error}") from error
    except Exception as error:
        # A damaged header can raise almost any exception in numpy.
        raise UserError(
            f"{file} is damaged or no .npy file of numbers: {_reason(file, error)}; "
            "write it again with numpy.save"
        ) from error
    return as_tensor(array)


def as_tensor(array: np.ndarray) -> Tensor:
    """An array as a tensor of the same memory.

    Raises:
        UserError: torch has no such type of numbers.
    """
    try:
        with warnings.catch_warnings():
            # torch warns of arrays that must not be written to.
            warnings.simplefilter("ignore", UserWarning)
            return torch.from_numpy(array)
    except (TypeError, ValueError) as error:
        raise UserError(
            f"an array of {array.dtype} with shape {list(array.shape)} cannot be used; "
            "write it as float32 or int64, in C order"
        ) from error


def expect_random_reads(x: Tensor) -> None:
    """Tells the system that rows will be read in no order, if they exceed memory.

    By default 128 KiB around a row are read from its file. A file that fits into memory
    is soon read by that; of a larger one most is dropped before it is used.

    Args:
        x: A tensor in the CPU's memory, which may be mapped from a file.
    """
    size = x.numel() * x.element_size()
    advice = getattr(mmap, "MADV_RANDOM", None)
    if advice is None or size <= available_bytes():
        return
    begin = x.data_ptr() // mmap.PAGESIZE * mmap.PAGESIZE
    length = x.data_ptr() + size - begin
    # Only advice: it changes no result, so a failure may be ignored.
    ctypes.CDLL(None).madvise(ctypes.c_void_p(begin), ctypes.c_size_t(length), advice)


def _reason(file: Path, error: Exception) -> str:
    if "mmap length" in str(error):
        return f"its {file.stat().st_size} bytes are fewer than its header says"
    return " ".join(str(error).split())[:100]
