"""An .npz file, opened without unpacking any array that is not asked for."""

import math
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from tempergat.base import UserError, first_line, require_memory

_SUFFIX = ".npy"
_HEADER_READERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


@dataclass(frozen=True)
class ArrayHeader:
    """What an array in an archive is, as its header says.

    Attributes:
        shape: Its shape.
        dtype: Its type.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def num_bytes(self) -> int:
        """The memory the array takes."""
        return math.prod(self.shape) * self.dtype.itemsize


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

    def header(self, name: str) -> ArrayHeader:
        """Reads the shape and the type of an array."""
        if name not in self._members:
            raise ValueError(f"it has no array {name}")
        with self._zip.open(self._members[name]) as member:
            version = np.lib.format.read_magic(member)
            reader = _HEADER_READERS.get(version)
            if reader is None:
                raise ValueError(f"{name} is of the unknown .npy version {version}")
            shape, _, dtype = reader(member)
        return ArrayHeader(tuple(shape), dtype)

    def read(self, names: Iterable[str]) -> dict[str, np.ndarray]:
        """Reads arrays.

        Raises:
            PickledObjects: One holds Python objects.
            UserError: Together they do not fit in memory.
        """
        headers = {name: self.header(name) for name in names}
        for name, header in headers.items():
            if header.dtype.hasobject:
                raise PickledObjects(name, header)
        require_memory(
            sum(header.num_bytes for header in headers.values()),
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


class PickledObjects(Exception):
    """An array holds Python objects, which cannot be read without running code.

    Args:
        name: The array.
        header: Its header.
    """

    def __init__(self, name: str, header: ArrayHeader) -> None:
        super().__init__(f"{name} holds pickled Python objects")
        self.name = name
        self.header = header


def refuse_pickled(path: Path, objects: PickledObjects) -> UserError:
    """The error for an .npz of objects, with the two lines that convert it."""
    # A sparse matrix becomes its parts, under the names that readers of graphs know.
    parts = (
        "{n.replace('matrix', p): getattr(a, p) for p in "
        "('data', 'indices', 'indptr', 'shape')}"
    )
    return UserError(
        f"{path}: {objects.name} holds pickled Python objects, which can run code; if "
        "you trust the file, convert it in its folder with `import numpy; g = {n: "
        "a.item() if a.ndim == 0 else numpy.array(a.tolist()) for n, a in "
        f"numpy.load({path.name!r}, allow_pickle=True).items()}}` and `numpy.savez("
        f"{path.stem + '_plain.npz'!r}, **{{k: v for n, a in g.items() for k, v in "
        f"({parts} if hasattr(a, 'indptr') else {{n: a}}).items()}})`"
    )
