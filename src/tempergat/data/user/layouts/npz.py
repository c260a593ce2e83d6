"""Reads .npz files of NumPy arrays."""

from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data

from tempergat.base import UserError, explain_unreadable, first_line
from tempergat.data.dataset import MASKS


def read_npz(path: Path, labelled: bool) -> Data:
    """Reads an .npz with one array for each attribute of a graph.

    Args:
        path: The file.
        labelled: Whether it must hold labels.

    Raises:
        UserError: The file is damaged, or has other arrays.
    """
    try:
        # Opened here, since numpy leaves a damaged file open.
        with explain_unreadable(path), open(path, "rb") as stream:
            opened = np.load(stream, allow_pickle=False)
            arrays = {name: opened[name] for name in opened.files}
    except UserError:
        raise
    except Exception as error:
        # A damaged archive can raise almost any exception in zipfile and numpy.
        raise UserError(
            f"{path} is not a readable .npz of plain arrays ({first_line(error)}); "
            "save it again with numpy.savez"
        ) from error
    known = ("edge_index", "x", "y", *MASKS)
    for name in ("edge_index", "y") if labelled else ("edge_index", "x"):
        if name not in arrays:
            raise UserError(
                f"{path} has no array {name}, only {', '.join(arrays) or 'none'}; an "
                f".npz graph takes {', '.join(known)}"
            )
    unknown = sorted(set(arrays) - set(known))
    if unknown:
        raise UserError(
            f"{path} has an array {unknown[0]}, which is not known; an .npz "
            f"graph takes {', '.join(known)}"
        )
    data = Data()
    for name, array in arrays.items():
        if array.dtype.kind not in "iufb":
            raise UserError(
                f"{path}: {name} has type {array.dtype}; save it as numbers"
            )
        data[name] = torch.from_numpy(_native(array))
    return data


def _native(array: np.ndarray) -> np.ndarray:
    """The array in native byte order, without types that torch lacks."""
    if array.dtype.kind == "u" and array.dtype.itemsize > 1:
        array = array.astype(np.int64)
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
