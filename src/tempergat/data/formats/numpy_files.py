"""Reads .npz and .npy files without running code."""

from pathlib import Path

import numpy as np
import scipy.sparse

from tempergat.base import UserError, first_line
from tempergat.data.formats.damaged import DamagedFile
from tempergat.data.formats.npz_archive import NpzArchive, why_unreadable


def load_arrays(path: Path, *names: str) -> dict[str, np.ndarray]:
    """The named arrays of an .npz file.

    Raises:
        UserError: The file is damaged, or lacks an array.
    """
    try:
        # Opened here, since zipfile leaves a damaged file open.
        with open(path, "rb") as stream:
            return NpzArchive(path, stream).read(names)
    except UserError:
        raise
    except Exception as error:
        # A damaged archive can raise almost any exception in zipfile and numpy.
        raise DamagedFile(
            path,
            f"does not hold the arrays {', '.join(names)} ({why_unreadable(error)})",
        ) from error


def load_array(path: Path) -> np.ndarray:
    """The array of an .npy file.

    Raises:
        UserError: The file is damaged.
    """
    try:
        with open(path, "rb") as stream:
            array: np.ndarray = np.load(stream, allow_pickle=False)
    except Exception as error:
        # A damaged file can raise almost any exception in numpy.
        raise DamagedFile(
            path, f"is not a plain array ({why_unreadable(error)})"
        ) from error
    return array


def class_numbers(path: Path, labels: np.ndarray) -> np.ndarray:
    """Labels as int64.

    Raises:
        UserError: They are not a list of whole numbers.
    """
    is_list = labels.ndim == 1 and labels.dtype.kind in "iuf"
    # NaN differs from itself.
    if not is_list or (labels.dtype.kind == "f" and (labels != np.rint(labels)).any()):
        raise DamagedFile(
            path,
            f"holds labels of type {labels.dtype} and shape {labels.shape} that are "
            "not whole numbers, one for each node",
        )
    return labels.astype(np.int64)


def require_nodes(path: Path, nodes: np.ndarray, count: int) -> None:
    """Checks that node numbers are below `count`.

    Raises:
        UserError: A node number is negative or too large.
    """
    if len(nodes) and not (nodes.min() >= 0 and nodes.max() < count):
        raise DamagedFile(
            path,
            f"names nodes {nodes.min()} to {nodes.max()}, but there are {count} nodes",
        )


def require_shape(
    path: Path, name: str, shape: tuple[int, ...], wanted: tuple[int, ...]
) -> None:
    """Checks the shape of an array in a file.

    Raises:
        UserError: The shape is not `wanted`.
    """
    if shape != wanted:
        raise DamagedFile(
            f"{path}:",
            f"the shape of {name} is {shape}, but the graph needs {wanted}",
        )


def checked_csr(
    path: Path,
    values: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    shape: tuple[int, int],
) -> scipy.sparse.csr_array:
    """A sparse matrix whose indices are within its shape.

    Raises:
        UserError: An index lies outside the shape.
    """
    try:
        if values.dtype.kind not in "iufb":
            raise ValueError(f"values of type {values.dtype}")
        matrix = scipy.sparse.csr_array((values, indices, indptr), shape=shape)
        matrix.check_format(full_check=True)
    except (ValueError, TypeError, IndexError) as error:
        raise DamagedFile(
            path, f"holds a broken sparse matrix ({first_line(error)})"
        ) from error
    return matrix
