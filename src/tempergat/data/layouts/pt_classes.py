"""The classes that a .pt file may name, and what is built in their place.

torch builds only what is on a list. PyG's own classes hold data and run nothing, so
they are on the list as they are. Batches, and NumPy's arrays, types and scalars, are
built by the functions and records below: NumPy's own would accept forged types.
"""

import math
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
from torch_geometric.data.storage import (
    AttrType,
    BaseStorage,
    EdgeStorage,
    GlobalStorage,
    NodeStorage,
)

# The names under which NumPy 1 and 2 save an array.
_NUMPY_MODULES = ("numpy.core.multiarray", "numpy._core.multiarray")


def _plain_dict(_factory: Any) -> dict[Any, Any]:
    """Replaces a defaultdict, which torch cannot fill."""
    return {}


class SavedDtype:
    """A NumPy type of numbers in a pickle."""

    def __init__(self, code: str, *_flags: object) -> None:
        self._code = code
        self._order = "="

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._order = state[1]

    def dtype(self) -> np.dtype[Any]:
        """The type.

        Raises:
            ValueError: It is not one of numbers.
        """
        # A type of None would be float64.
        dtype = np.dtype(str(self._code))
        if dtype.kind not in "iufb" or self._order not in ("<", ">", "=", "|"):
            raise ValueError(f"an array of type {self._code} holds no numbers")
        return dtype.newbyteorder(self._order)  # type: ignore[arg-type]


class SavedArray:
    """A NumPy array in a pickle, whose type and size are checked when it is used."""

    def __init__(self, *_arguments: object) -> None:
        self._state: tuple[Any, ...] = ()

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._state = state

    def array(self) -> np.ndarray:
        """The array.

        Raises:
            ValueError: It does not hold numbers, or is damaged.
        """
        _, shape, saved, is_fortran, content = self._state
        if not isinstance(saved, SavedDtype) or not isinstance(content, bytes):
            raise ValueError("an array that holds no numbers")
        dtype = saved.dtype()
        if math.prod(shape) * dtype.itemsize != len(content):
            raise ValueError(f"an array of shape {shape} in {len(content)} bytes")
        flat = np.frombuffer(content, dtype=dtype)
        return flat.reshape(shape, order="F" if is_fortran else "C")


def _saved_scalar(saved: SavedDtype, content: bytes) -> Any:
    return np.frombuffer(content, dtype=saved.dtype()).item()


def _empty_batch(_batch: type, kind: type) -> Data | HeteroData:
    """A graph in place of a Batch of graphs of this kind."""
    return HeteroData() if kind is HeteroData else Data()


class _BatchBuilder:
    """Replaces the object that PyG calls to build a Batch."""

    def __new__(cls) -> Any:
        # torch only calls functions that are themselves on the list.
        return _empty_batch


class _Batch:
    """Replaces the class Batch, which is named in the file and not used."""


_BATCH_MODULE = "torch_geometric.data.batch"
_LOADABLE: list[Any] = [
    Data,
    HeteroData,
    DataEdgeAttr,
    DataTensorAttr,
    BaseStorage,
    NodeStorage,
    EdgeStorage,
    GlobalStorage,
    # PyG caches which attributes belong to nodes or edges.
    AttrType,
    (_plain_dict, "collections.defaultdict"),
    _empty_batch,
    (_BatchBuilder, f"{_BATCH_MODULE}.DynamicInheritanceGetter"),
    (_Batch, f"{_BATCH_MODULE}.Batch"),
    (SavedDtype, "numpy.dtype"),
    (SavedArray, "numpy.ndarray"),
    *((SavedArray, f"{module}._reconstruct") for module in _NUMPY_MODULES),
    *((_saved_scalar, f"{module}.scalar") for module in _NUMPY_MODULES),
]


@contextmanager
def loadable_graphs() -> Iterator[None]:
    """Lets torch load PyG's graphs, besides what it was allowed to load before."""
    before = torch.serialization.get_safe_globals()
    try:
        torch.serialization.clear_safe_globals()
        torch.serialization.add_safe_globals(
            [part for part in before if part is not defaultdict] + _LOADABLE
        )
        yield
    finally:
        torch.serialization.clear_safe_globals()
        torch.serialization.add_safe_globals(before)
