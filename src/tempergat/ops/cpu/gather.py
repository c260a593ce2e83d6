"""Collects the items of some graphs from the tables of a set, by the C++ function."""

from __future__ import annotations

import ctypes

import numpy as np

from tempergat.ops.cpu import library

# The fields of GraphColumn in csrc/graphs/gather.h, all of 8 bytes.
COLUMN = (
    *("data", "outer", "outer_step", "item_bytes", "segments", "number_bytes"),
    *("rise", "rises", "out", "out_step"),
)
_POINTER, _NUMBER = ctypes.c_void_p, ctypes.c_int64
_GATHER = library.library.function(
    "gather_graphs",
    *(_POINTER, _NUMBER, _POINTER, _NUMBER, _POINTER, _POINTER, _NUMBER),
    result=None,
)


def can_gather() -> bool:
    """Whether there is a library, and it has the function."""
    return _GATHER is not None


def gather_graphs(
    columns: np.ndarray, starts: np.ndarray, sums: np.ndarray, graphs: np.ndarray
) -> None:
    """Writes the items of each column; all arrays are int64 and contiguous.

    Args:
        columns: The fields of each column, in the order of `COLUMN`.
        starts: Where the items of each graph of the set begin, [segments, set + 1].
        sums: What comes before each graph of the batch, and the total, [rows, batch +
            1]; its first rows are the numbers of items of each kind of segments.
        graphs: The numbers of the graphs in the set, [batch].
    """
    _GATHER(
        *(columns.ctypes.data, len(columns), starts.ctypes.data, starts.shape[1] - 1),
        *(sums.ctypes.data, graphs.ctypes.data, len(graphs)),
    )
