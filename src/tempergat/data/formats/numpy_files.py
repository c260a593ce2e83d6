"""Reads .npz and .npy files without running code.

No array of an .npz file is unpacked that is not asked for.
"""

import math
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from tempergat.base import UserError, explain_unreadable, first_line, require_memory
from tempergat.data.formats.errors import DamagedFile, GraphError

EDGE_ARRAYS = ("edge_attr", "edge_weight")
_CSR_PARTS = ("data", "indices", "indptr", "shape")
_SUFFIX = ".npy"
_HEADER_READERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


class NpzArchive:
    """The arrays of an .npz file, each read when it is asked for.

    Every method raises what `zipfile` and `numpy` raise for a damaged file, which can
    be almost any exception.

    Args:
        path: The file.
        stream: The file, opened.
    """

    def __init__(self, path: Path, stream: IO[bytes]) -> None:
        self._path = path
        self._zip = zipfile.ZipFile(stream)
        listed = self._zip.namelist()
        self._members = {name.removesuffix(_SUFFIX): name for name in listed}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the arrays."""
        return tuple(self._members)

    def header(self, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Reads the shape and the type of an array."""
        if name not in self._members:
            raise ValueError(f"it has no array {name}")
        with self._zip.open(self._members[name]) as member:
            version = np.lib.format.read_magic(member)
            reader = _HEADER_READERS.get(version)
            if reader is None:
                raise ValueError(f"{name} is of the unknown .npy version {version}")
            shape, _, dtype = reader(member)
        return tuple(shape), dtype

    def read(self, names: Iterable[str]) -> dict[str, np.ndarray]:
        """Reads arrays.

        Raises:
            UserError: One holds Python objects, or they do not fit in memory.
        """
        headers = {name: self.header(name) for name in names}
        for name, (_, dtype) in headers.items():
            if dtype.hasobject:
                raise refuse_pickled(self._path, name)
        require_memory(
            sum(math.prod(shape) * d.itemsize for shape, d in headers.values()),
            f"reading {self._path}",
            "use a machine with more memory",
        )
        arrays = {}
        for name in headers:
            with self._zip.open(self._members[name]) as member:
                arrays[name] = np.lib.format.read_array(member, allow_pickle=False)
        return arrays


def why_unreadable(error: BaseException) -> str:
    """Why numpy cannot read a file, without its advice to run the code in the file."""
    text = first_line(error)
    if "allow_pickle" in text or "max_header_size" in text:
        return "it holds pickled Python objects, or a header that could run code"
    return text


def refuse_pickled(path: Path, name: str) -> GraphError:
    """The error for an array of Python objects, with the two lines that convert it."""
    # A sparse matrix becomes its parts, under the names that readers of graphs know.
    parts = (
        "{n.replace('matrix', p): getattr(a, p) for p in "
        "('data', 'indices', 'indptr', 'shape')}"
    )
    return GraphError(
        f"{path}:",
        f"{name} holds pickled Python objects, which can run code",
        "if you trust the file, convert it in its folder with `import numpy; g = {n: "
        "a.item() if a.ndim == 0 else numpy.array(a.tolist()) for n, a in "
        f"numpy.load({path.name!r}, allow_pickle=True).items()}}` and `numpy.savez("
        f"{path.stem + '_plain.npz'!r}, **{{k: v for n, a in g.items() for k, v in "
        f"({parts} if hasattr(a, 'indptr') else {{n: a}}).items()}})`",
    )


@contextmanager
def open_npz(path: Path) -> Iterator[NpzArchive]:
    """Opens an .npz file; what is wrong with it while it is open is said in one line.

    Raises:
        GraphError: The file is damaged, or an array that is read holds Python objects.
        UserError: It may not be read, or does not fit in memory.
    """
    # Opened here, since zipfile leaves a damaged file open.
    with explain_unreadable(path), open(path, "rb") as stream:
        try:
            yield NpzArchive(path, stream)
        except UserError:
            raise
        except Exception as error:
            # A damaged archive can raise almost any exception in zipfile and numpy.
            reason = why_unreadable(error)
            problem = f"is not a readable .npz of plain arrays ({reason})"
            raise GraphError(path, problem, "save it again with numpy.savez") from error


def require_arrays(path: Path, archive: NpzArchive, names: Sequence[str]) -> None:
    """Checks that an archive has arrays.

    Raises:
        GraphError: It lacks one.
    """
    for name in names:
        if name not in archive.names:
            problem = f"has no array {name}, only {', '.join(archive.names)}"
            raise GraphError(path, problem, "add it")


def load_arrays(path: Path, *names: str) -> dict[str, np.ndarray]:
    """The named arrays of an .npz file.

    Raises:
        GraphError: The file is damaged, or lacks an array.
    """
    with open_npz(path) as archive:
        require_arrays(path, archive, names)
        return archive.read(names)


def read_csr(
    path: Path, archive: NpzArchive, prefix: str = ""
) -> scipy.sparse.csr_array:
    """A sparse matrix from its parts in an archive, its indices within its shape.

    Args:
        path: The file.
        archive: The file, opened.
        prefix: What the names of the parts begin with, like `"adj_"`.

    Raises:
        GraphError: A part is missing or of a wrong type, or they do not fit together.
    """
    names = [f"{prefix}{part}" for part in _CSR_PARTS]
    require_arrays(path, archive, names)
    values, indices, indptr, shape = (
        native_numbers(f"{path}: {part}", array)
        for part, array in archive.read(names).items()
    )
    for part, array in zip(names[1:], (indices, indptr, shape), strict=True):
        if array.dtype.kind not in "iu":
            problem = f"{part} has type {array.dtype}"
            raise GraphError(f"{path}:", problem, "save integers")
    if shape.shape != (2,) or (shape < 0).any():
        problem = f"{prefix}shape is {shape.tolist()}"
        raise GraphError(f"{path}:", problem, "give the number of rows and of columns")
    try:
        matrix = scipy.sparse.csr_array(
            (values, indices, indptr), shape=(int(shape[0]), int(shape[1]))
        )
        matrix.check_format(full_check=True)
    except ValueError as error:
        raise GraphError(
            f"{path}:",
            f"{', '.join(names)} are not a sparse matrix ({first_line(error)})",
            "save the parts of one scipy.sparse.csr_array",
        ) from error
    return matrix


def load_csr(path: Path) -> scipy.sparse.csr_array:
    """The sparse matrix in an .npz file of its parts; see `read_csr`."""
    with open_npz(path) as archive:
        return read_csr(path, archive)


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
    if labels.ndim != 1 or labels.dtype.kind not in "iuf":
        problem = f"holds labels of type {labels.dtype} and shape {labels.shape}"
        raise DamagedFile(path, f"{problem}, not a whole number for each node")
    # NaN differs from itself; from 2^53 on floats do not hold every whole number.
    wrong = np.flatnonzero((labels != np.rint(labels)) | (np.abs(labels) >= 2**53))
    if len(wrong):
        problem = f"gives node {wrong[0]} the label {labels[wrong[0]]}"
        raise DamagedFile(path, f"{problem}, which is not a whole number")
    return labels.astype(np.int64)


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
    shape = archive.header(name)[0]
    if shape[:1] != (count,) or len(shape) > 2:
        raise GraphError(
            f"{path}:",
            f"{name} has shape {shape}, but there are {count} edges",
            "give every edge one value, or one row of values",
        )
    return native_numbers(f"{path}: {name}", archive.read([name])[name])


def native_numbers(where: str, array: np.ndarray) -> np.ndarray:
    """The array in native byte order, without types that torch lacks.

    Raises:
        UserError: It does not hold numbers, or numbers that 64 bits cannot hold.
    """
    if array.dtype.kind not in "iufb":
        raise GraphError(where, f"has type {array.dtype}", "save it as numbers")
    if array.dtype.kind == "u" and array.dtype.itemsize > 1:
        array = _signed(where, array)
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))


def _signed(where: str, array: np.ndarray) -> np.ndarray:
    largest = array.max(initial=0)
    if largest > np.iinfo(np.int64).max:
        raise GraphError(
            where,
            f"holds {largest}, which is too large for a 64-bit integer",
            "number nodes and classes from 0",
        )
    return array.astype(np.int64)
