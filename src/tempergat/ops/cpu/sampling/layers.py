"""The graphs of a sampled batch's layers, by the C++ functions."""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

from tempergat.ops.cpu import library
from tempergat.ops.graph import Graph, Rows

_POINTER, _NUMBER = ctypes.c_void_p, ctypes.c_int64
_find = library.library.function
_ADD_LOOPS = _find("add_loops", *[_POINTER] * 2, *[_NUMBER] * 2, *[_POINTER] * 6)
_GROUP = _find(
    "group_by_source", *[_POINTER] * 2, *[_NUMBER] * 2, *[_POINTER] * 3, result=None
)


def make_layer_graph(
    source: Tensor,
    target: Tensor,
    pointer: Tensor,
    sizes: tuple[int, int],
    self_loops: bool,
    by_source: bool,
) -> Graph | None:
    """The graph of edges that are sorted by target, with nothing left to sort.

    Args:
        source: The source of each edge, int32, on the CPU and contiguous.
        target: The target of each edge, int32, ascending.
        pointer: Where the edges of each target begin and end, int32.
        sizes: The number of source and of target nodes.
        self_loops: Whether self-loops are replaced by one for every target.
        by_source: Whether the edges are grouped by source too.

    Returns:
        The graph, equal to ``Graph(edges, sizes, self_loops=self_loops)``; None if
        there is no library.
    """
    if _GROUP is None:
        return None
    count, (num_src, num_dst) = source.size(0), sizes
    if not self_loops:
        edge_id = torch.arange(count, dtype=torch.int32)
        src, dst, rows = source, target, Rows(pointer, source, edge_id, edge_id)
    else:
        parts, pointer = _empty(5, count + num_dst), _empty(num_dst + 1)
        kept = _ADD_LOOPS(
            *(source.data_ptr(), target.data_ptr(), count, num_dst),
            *(x.data_ptr() for x in (*parts[:3], pointer, *parts[3:])),
        )
        src, dst, edge_id, other, position = parts[:, : kept + num_dst]
        rows = Rows(pointer, other, position, _identities(position, edge_id))
    return Graph.ready(
        src,
        dst,
        edge_id,
        sizes,
        by_target=rows,
        by_source=_by_source(src, dst, edge_id, num_src) if by_source else None,
        num_edges=count,
        self_loops=self_loops,
    )


def _by_source(src: Tensor, dst: Tensor, edge_id: Tensor, num_src: int) -> Rows:
    count = src.size(0)
    pointer, (other, position) = _empty(num_src + 1), _empty(2, count)
    _GROUP(
        *(src.data_ptr(), dst.data_ptr(), count, num_src),
        *(x.data_ptr() for x in (pointer, other, position)),
    )
    return Rows(pointer, other, position, _identities(position, edge_id))


def _identities(position: Tensor, edge_id: Tensor) -> Tensor:
    """The identities of edges at some places of the graph's order."""
    # Identities are places, unless a self-loop was replaced: then the last one differs.
    count = edge_id.size(0)
    if count == 0 or int(edge_id[-1]) == count - 1:
        return position
    return edge_id.index_select(0, position)


def _empty(*shape: int) -> Tensor:
    return torch.empty(shape, dtype=torch.int32, device="cpu")
