"""Arrays of an .npz as tensors."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from tempergat.base import UserError
from tempergat.data.formats.npz_archive import NpzArchive

EDGE_ARRAYS = ("edge_attr", "edge_weight")


def read_tensors(
    path: Path, archive: NpzArchive, names: Sequence[str]
) -> dict[str, Tensor]:
    """Reads arrays of numbers.

    Raises:
        UserError: One does not hold numbers, or numbers that 64 bits cannot hold.
    """
    arrays = archive.read(names)
    return {
        name: torch.from_numpy(native_numbers(f"{path}: {name}", array))
        for name, array in arrays.items()
    }


def read_edge_column(
    path: Path, archive: NpzArchive, edge_index: Tensor, name: str
) -> np.ndarray:
    """Reads an array that has one value, or one row of values, for each edge.

    Raises:
        UserError: It has another number of rows, or more dimensions.
    """
    count = edge_index.shape[1] if edge_index.dim() == 2 else 0
    shape = archive.header(name).shape
    if shape[:1] != (count,) or len(shape) > 2:
        raise UserError(
            f"{path}: {name} has shape {shape}, but there are {count} edges; give "
            "every edge one value, or one row of values"
        )
    return native_numbers(f"{path}: {name}", archive.read([name])[name])


def native_numbers(where: str, array: np.ndarray) -> np.ndarray:
    """The array in native byte order, without types that torch lacks.

    Raises:
        UserError: It does not hold numbers, or numbers that 64 bits cannot hold.
    """
    if array.dtype.kind not in "iufb":
        raise UserError(f"{where} has type {array.dtype}; save it as numbers")
    if array.dtype.kind == "u" and array.dtype.itemsize > 1:
        array = _signed(where, array)
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))


def _signed(where: str, array: np.ndarray) -> np.ndarray:
    largest = array.max(initial=0)
    if largest > np.iinfo(np.int64).max:
        raise UserError(
            f"{where} holds {largest}, which is too large for a 64-bit integer; number "
            "nodes and classes from 0"
        )
    return array.astype(np.int64)
