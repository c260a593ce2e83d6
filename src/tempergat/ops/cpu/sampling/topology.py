"""Groups the edges of a large graph by target, by the C++ functions."""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

from tempergat.ops.cpu import library

_POINTER, _NUMBER = ctypes.c_void_p, ctypes.c_int64
_find = library.library.function
_COUNT = _find("count_targets", *[_POINTER] * 2, *[_NUMBER] * 5, _POINTER)
_PLACE = _find(
    "place_edges", *[_POINTER] * 2, *[_NUMBER] * 4, *[_POINTER] * 3, result=None
)
# As in csrc/graphs/topology.h.
_SORTED, _NO_SUCH_NODE = 1, -1


def group_by_target(
    edge_index: Tensor, sizes: tuple[int, int]
) -> tuple[Tensor, Tensor, Tensor | None] | None:
    """The edges by target, in their order within a target.

    Args:
        edge_index: Fewer than 2**31 edges between as many nodes, int64 or int32, in
            the CPU's memory or mapped from a file, [2, E].
        sizes: The number of source and of target nodes.

    Returns:
        Where the edges of each target begin and end, int64; their sources, int32; and
        their numbers in ``edge_index``, int32, or None if it is sorted by target. None
        if there is no library, or a node does not exist.
    """
    if _PLACE is None:
        return None
    source, target = edge_index
    count, step = source.size(0), source.stride(0)
    pointer = torch.empty(sizes[1] + 1, dtype=torch.int64)
    ends = source.data_ptr(), target.data_ptr(), source.element_size(), step, count
    status = _COUNT(*ends, *sizes, pointer.data_ptr())
    if status == _NO_SUCH_NODE:
        return None
    if status == _SORTED:
        return pointer, source.to(torch.int32).contiguous(), None
    grouped = torch.empty(2, count, dtype=torch.int32)
    _PLACE(*ends, sizes[1], pointer.data_ptr(), *(x.data_ptr() for x in grouped))
    return pointer, grouped[0], grouped[1]
