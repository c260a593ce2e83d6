"""Reads downloaded pickles without running code from them.

A pickle can name any function and have it called. Here every name outside a fixed list
is an error, and the classes on the list are plain data. Arrays and sparse matrices are
checked before they are built, because a forged one could make compiled code read
outside of them.
"""

import collections
import math
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse

from tempergat.base import UserError
from tempergat.data.formats.errors import DamagedFile

_reconstruct_array = np.empty(0).__reduce__()[0]


class TypeRecord:
    """A pickled dtype without its state, of which numpy checks too little."""

    def __init__(self, name: str, *_: object) -> None:
        self.dtype = np.dtype(str(name))

    def __setstate__(self, state: Any) -> None:
        self.dtype = self.dtype.newbyteorder(state[1])


class Array(np.ndarray):
    """An array of as many values as its shape says; numpy reads past a short list."""

    def __setstate__(self, state: Any) -> None:
        *_, shape, kind, is_fortran, values = state
        is_list = kind.dtype.kind == "O"
        if isinstance(values, list) != is_list or kind.dtype.kind not in "biufSUO":
            raise pickle.UnpicklingError(f"an array of type {kind.dtype}")
        if is_list and (min(shape, default=0) < 0 or math.prod(shape) != len(values)):
            raise pickle.UnpicklingError(f"{len(values)} objects of shape {shape}")
        super().__setstate__((1, shape, kind.dtype, is_fortran, values))


class SparseRecord:
    """The state of a pickled scipy CSR matrix, unchecked."""

    def __init__(self, *arguments: object) -> None:
        self.state: dict[str, Any] = {}

    def __setstate__(self, state: object) -> None:
        if not isinstance(state, dict):
            raise pickle.UnpicklingError("a sparse matrix without a state")
        self.state = state

    def matrix(self) -> scipy.sparse.csr_array:
        """The matrix, its indices checked against its shape."""
        shape = self.state.get("_shape", self.state.get("shape"))
        if not isinstance(shape, tuple) or len(shape) != 2:
            raise pickle.UnpicklingError(f"a sparse matrix of shape {shape!r}")
        arrays = []
        for name, kinds in (("data", "fiub"), ("indices", "iu"), ("indptr", "iu")):
            array = self.state.get(name)
            if not isinstance(array, np.ndarray) or array.dtype.kind not in kinds:
                raise pickle.UnpicklingError(f"a sparse matrix without valid {name}")
            arrays.append(array)
        values, indices, indptr = arrays
        size = (int(shape[0]), int(shape[1]))
        matrix = scipy.sparse.csr_array((values, indices, indptr), shape=size)
        matrix.check_format(full_check=True)
        return matrix


def _latin1(text: str, encoding: str) -> bytes:
    """Replaces the codec call with which older protocols write bytes."""
    if encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError(f"bytes written as {encoding!r}")
    return text.encode("latin-1")


PLAIN_DATA: Mapping[tuple[str, str], Any] = {
    ("__builtin__", "list"): list,
    ("builtins", "list"): list,
    ("__builtin__", "dict"): dict,
    ("builtins", "dict"): dict,
    ("collections", "defaultdict"): collections.defaultdict,
    ("_codecs", "encode"): _latin1,
    ("numpy", "ndarray"): Array,
    ("numpy", "dtype"): TypeRecord,
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct_array,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct_array,
    ("scipy.sparse.csr", "csr_matrix"): SparseRecord,
    ("scipy.sparse._csr", "csr_matrix"): SparseRecord,
}


class _ListedOnly(pickle.Unpickler):
    def __init__(
        self, stream: IO[bytes], path: Path, allowed: Mapping[tuple[str, str], Any]
    ) -> None:
        # Planetoid's pickles come from Python 2, with byte strings in latin-1.
        super().__init__(stream, encoding="latin1")
        self._path = path
        self._allowed = allowed

    def find_class(self, module: str, name: str) -> Any:
        try:
            return self._allowed[module, name]
        except KeyError:
            raise DamagedFile(
                self._path,
                f"asks to load {module}.{name}, which this dataset does not need; "
                "the file is damaged, hostile or of another version",
            ) from None

    def persistent_load(self, identifier: object) -> Any:
        raise pickle.UnpicklingError("a reference to something outside the file")


def load_pickle(path: Path, allowed: Mapping[tuple[str, str], Any] = PLAIN_DATA) -> Any:
    """Reads a pickle that may only name classes on a list.

    Args:
        path: The file.
        allowed: The classes that may be named, by module and name, each with the class
            or function that replaces it.

    Raises:
        UserError: The file names anything else, or is not a complete pickle.
    """
    with open(path, "rb") as stream:
        return load_pickle_stream(stream, path, allowed)


def load_pickle_stream(
    stream: IO[bytes], path: Path, allowed: Mapping[tuple[str, str], Any]
) -> Any:
    """Reads a pickle from an open file; see `load_pickle`."""
    try:
        value = _ListedOnly(stream, path, allowed).load()
        return value.matrix() if isinstance(value, SparseRecord) else value
    except UserError:
        raise
    except Exception as error:
        # A damaged pickle can raise almost any exception.
        raise DamagedFile(
            path,
            f"is not a readable pickle ({type(error).__name__}: {error})",
        ) from error
