"""Prepares edges on the CPU by the C++ functions: a checksum, and groups by one end.

Groups are those of torch's stable sort in `ops/graphs/graph.py` and
`sampling/topology.py`, which serve all other devices, and the CPU where there is no
library.
"""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

from tempergat.ops import registration
from tempergat.ops.cpu import library
from tempergat.ops.torch_internals import (
    in_dispatch_mode,
    in_transform,
    is_exporting,
    is_tracing,
)

_POINTER, _NUMBER = ctypes.c_void_p, ctypes.c_int64
_function = library.library.function
_CHECKSUM = _function("checksum", _POINTER, *[_NUMBER] * 5)
_GROUP_EDGES = _function("group_edges", _POINTER, *[_NUMBER] * 8, _POINTER)
_GROUP = _function("group", *[_POINTER] * 3, *[_NUMBER] * 2, _POINTER)
_COUNT = _function("count_targets", *[_POINTER] * 2, *[_NUMBER] * 5, _POINTER)
_PLACE = _function(
    "place_edges", *[_POINTER] * 2, *[_NUMBER] * 4, *[_POINTER] * 3, result=None
)
# Whether there is a library.
_is_available = _CHECKSUM is not None
# As in csrc/graphs/topology.h.
_SORTED, _NO_SUCH_NODE = 1, -1
# As in csrc/graphs/checksum.h: how many elements are read whole, and how many of more.
CHECKED_WHOLE, _SAMPLED = 2048, 512


def checksum(tensor: Tensor) -> int:
    """A number that differs, nearly always, where the contents differ.

    All elements of a tensor of up to 2,048 elements count. Of a larger one 64 runs of
    8 elements count, evenly spread, so that the call takes a few microseconds.

    Args:
        tensor: A strided tensor on the CPU, of any number of dimensions.
    """
    data = tensor.detach() if tensor.requires_grad else tensor
    if data.dim() != 2:
        # A view where the layout allows it.
        data = data.reshape(1, -1)
    if _is_available and data.element_size() in (4, 8):
        layout = data.element_size(), *data.shape, *data.stride()
        number: int = _CHECKSUM(data.data_ptr(), *layout)
        return number
    step = 1 if data.numel() <= CHECKED_WHOLE else data.numel() // _SAMPLED
    return hash(tuple(data[:, ::step].flatten().tolist()))


def can_group(index: Tensor, largest: int) -> bool:
    """Whether `group_edges` and `group` take edges that are given by this tensor.

    Args:
        index: The tensor.
        largest: The largest number among nodes and edges.
    """
    # Only torch's own tensors surely have memory. The results are int32.
    return (
        type(index) is Tensor
        and _is_available
        and index.is_cpu
        and largest < 2**31
        and not (is_tracing() or in_transform() or in_dispatch_mode())
    )


def group_edges(
    edge_index: Tensor, sizes: tuple[int, int], num_loops: int, by_source: bool
) -> tuple[Tensor, ...] | None:
    """Checks edges, replaces their self-loops if asked to, and groups them.

    Args:
        edge_index: The edges, int64 or int32, [2, E].
        sizes: The number of source and of target nodes.
        num_loops: 0, or ``min(sizes)`` to replace all self-loops by that many.
        by_source: Whether the edges are grouped by source too.

    Returns:
        Source, target and identity of every edge, then the four parts of the edges by
        target and, where asked for, by source; None if an edge refers to a node that
        does not exist.
    """
    given = edge_index.size(1)
    pointers = sizes[0] + sizes[1] + 2 if by_source else sizes[1] + 1
    parts = 9 if by_source else 6
    # One allocation: on a small graph, one for each part would take longer.
    memory = torch.empty(
        pointers + parts * (given + num_loops), dtype=torch.int32, device="cpu"
    )
    kept = _GROUP_EDGES(
        edge_index.data_ptr(),
        edge_index.element_size(),
        *edge_index.stride(),
        given,
        *sizes,
        num_loops > 0,
        by_source,
        memory.data_ptr(),
    )
    if kept < 0:
        return None
    count, unused = kept + num_loops, parts * (given - kept)
    lengths = [count, count, count, sizes[1] + 1, count, count, count]
    if by_source:
        lengths += [sizes[0] + 1, count, count, count]
    return memory.split_with_sizes([*lengths, unused])[:-1]


def group(
    key: Tensor, other: Tensor, edge_id: Tensor, num_rows: int
) -> tuple[Tensor, ...] | None:
    """The four parts of edges grouped by ``key``; all tensors are int32.

    Edges with the key ``num_rows`` belong to no row and come last. None if a key is
    another number that is no row's.
    """
    edges = tuple(x.contiguous() for x in (key, other, edge_id))
    count = key.size(0)
    memory = torch.empty(num_rows + 1 + 3 * count, dtype=torch.int32, device="cpu")
    ends = [x.data_ptr() for x in edges]
    if _GROUP(*ends, count, num_rows, memory.data_ptr()) < 0:
        return None
    return memory.split_with_sizes([num_rows + 1, count, count, count])


def can_group_in_graph(key: Tensor) -> bool:
    """Whether a compiler that traces the call may record `group` as one op."""
    compiles = torch.compiler.is_compiling() and not is_exporting()
    return compiles and _is_available and key.is_cpu and key.dtype == torch.int32


def _group_for_compilers(
    key: Tensor, other: Tensor, edge_id: Tensor, num_rows: int
) -> tuple[Tensor, ...]:
    grouped = group(key, other, edge_id, num_rows)
    if grouped is None:
        raise ValueError(
            "edge_index refers to a node that does not exist; there are "
            f"{num_rows} nodes at this end (0..{num_rows - 1})"
        )
    # The results of an op share no memory.
    return tuple(part.clone() for part in grouped)


def _shapes_of_group(
    key: Tensor, other: Tensor, edge_id: Tensor, num_rows: int
) -> tuple[Tensor, ...]:
    parts = (torch.empty_like(key) for _ in range(3))
    return key.new_empty(num_rows + 1), *parts


registration.library.define(  # type: ignore[no-untyped-call]
    "group_rows(Tensor key, Tensor other, Tensor edge_id, SymInt num_rows) "
    "-> (Tensor, Tensor, Tensor, Tensor)"
)
registration.library.impl(  # type: ignore[no-untyped-call]
    "group_rows", _group_for_compilers, "CPU"
)
torch.library.register_fake(
    "tempergat::group_rows", _shapes_of_group, lib=registration.library
)


def group_by_target(
    edge_index: Tensor, sizes: tuple[int, int]
) -> tuple[Tensor, Tensor, Tensor | None] | None:
    """The edges of a large graph by target, in their order within a target.

    Args:
        edge_index: Fewer than 2**31 edges between as many nodes, int64 or int32, in
            the CPU's memory or mapped from a file, [2, E].
        sizes: The number of source and of target nodes.

    Returns:
        Where the edges of each target begin and end, int64; their sources, int32; and
        their numbers in ``edge_index``, int32, or None if it is sorted by target. None
        if there is no library, or a node does not exist.
    """
    if not _is_available:
        return None
    source, target = edge_index
    count, step = source.size(0), source.stride(0)
    pointer = torch.empty(sizes[1] + 1, dtype=torch.int64, device="cpu")
    ends = source.data_ptr(), target.data_ptr(), source.element_size(), step, count
    status = _COUNT(*ends, *sizes, pointer.data_ptr())
    if status == _NO_SUCH_NODE:
        return None
    if status == _SORTED:
        return pointer, source.to(torch.int32).contiguous(), None
    grouped = torch.empty(2, count, dtype=torch.int32, device="cpu")
    _PLACE(*ends, sizes[1], pointer.data_ptr(), *(x.data_ptr() for x in grouped))
    return pointer, grouped[0], grouped[1]
