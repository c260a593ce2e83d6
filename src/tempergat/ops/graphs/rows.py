"""Edges as attention needs them: checked, with self-loops, and grouped by one end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from tempergat.ops import gpu
from tempergat.ops.cpu import edges
from tempergat.ops.torch_internals import (
    has_data,
    in_torch_export,
    is_tracing,
    ordinary_tensors,
)


class Rows(NamedTuple):
    """Edges grouped by one end.

    Row ``i`` owns slots ``pointer[i]`` to ``pointer[i + 1]``. For each slot,
    ``other`` is the node at the other end, ``position`` the edge's place in the
    graph's edge order and ``edge_id`` its identity for random numbers.
    """

    pointer: Tensor
    other: Tensor
    position: Tensor
    edge_id: Tensor


class Relation(NamedTuple):
    """The edges of one type in a large graph, grouped by target.

    Attributes:
        pointer: Where the slots of each target begin and end, int32 or int64.
        source: The source of the edge in each slot, int32 or int64.
        source_type: The number of the sources' node type.
        target_type: The number of the targets' node type.
    """

    pointer: Tensor
    source: Tensor
    source_type: int
    target_type: int


# Source, target and identity of every edge, then the groups that were made already.
Sorted = tuple[Tensor, Tensor, Tensor, Rows | None, Rows | None]


def sort_edges(
    edge_index: Tensor,
    sizes: tuple[int, int],
    self_loops: bool,
    check: bool,
    padded: bool,
) -> Sorted:
    """The edges of a new graph; the arguments are those of `Graph`.

    Args:
        edge_index: Source and target of every edge.
        sizes: Number of source and of target nodes.
        self_loops: Whether one for every node that is both replaces all self-loops.
        check: Whether the node numbers are compared with the sizes.
        padded: Whether a replaced self-loop stays in its place.
    """
    both, num_loops = torch.is_grad_enabled(), min(sizes) if self_loops else 0
    counts = (*sizes, edge_index.size(1) + num_loops)
    traced = is_tracing()
    # While exporting, `max` would make the order of these sizes a condition.
    if not (padded or traced):
        largest = max(counts)
        if edges.can_group(edge_index, largest):
            parts = edges.group_edges(edge_index, sizes, num_loops, both)
            if parts is not None:
                src, dst, edge_id, *rows = parts
                by_source = Rows(*rows[4:]) if both else None
                return src, dst, edge_id, Rows(*rows[:4]), by_source
        if gpu.can_group(edge_index, largest):
            # Waits for the device once.
            group = gpu.kernels("edges").group_edges
            grouped = group(edge_index, sizes, num_loops, both)
            if check and edge_index.size(1):
                check_limits(grouped.lowest, grouped.highest, sizes)
            by_source = Rows(*grouped.by_source) if both else None
            return *grouped.edges, Rows(*grouped.by_target), by_source
    if check and not traced and has_data(edge_index):
        check_range(edge_index, *sizes)
    # A copy: a later edit of edge_index must not reach the kernels, and a cached graph
    # must not keep edge_index alive.
    dtype = edge_index.dtype
    # An exported program takes graphs of any size, so it keeps the type.
    if not in_torch_export():
        small = all(count < 2**31 for count in counts)
        dtype = torch.int32 if small else torch.int64
    src, dst = edge_index.to(dtype, copy=True).unbind()
    edge_id = torch.arange(src.size(0), device=src.device, dtype=dtype)
    if self_loops:
        ends = (src, dst, edge_id)
        src, dst, edge_id = _replace_self_loops(*ends, sizes[1], num_loops, padded)
    return src, dst, edge_id, None, None


def _replace_self_loops(
    src: Tensor,
    dst: Tensor,
    edge_id: Tensor,
    num_dst: int,
    num_loops: int,
    padded: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    count = src.size(0)
    kept = src != dst
    if padded:
        dst = torch.where(kept, dst, num_dst)
    else:
        places = kept.nonzero().squeeze(1)
        if is_tracing() or places.size(0) != count:
            src, dst = src.index_select(0, places), dst.index_select(0, places)
            edge_id = places.to(src.dtype)
    loops = torch.arange(num_loops, device=src.device, dtype=src.dtype)
    edge_id = torch.cat([edge_id, loops + count])
    return torch.cat([src, loops]), torch.cat([dst, loops]), edge_id


def group_rows(key: Tensor, other: Tensor, edge_id: Tensor, num_rows: int) -> Rows:
    """Edges grouped by one end, by the C++ function where it can and else by sorting.

    Args:
        key: This end of every edge; ``num_rows`` for an edge that belongs to no row.
        other: The other end.
        edge_id: The identity of every edge for random numbers.
        num_rows: The number of nodes at this end.
    """
    with ordinary_tensors(key):
        if key.dtype == torch.int32 and edges.can_group(key, num_rows):
            grouped = edges.group(key, other, edge_id, num_rows)
            if grouped is not None:
                return Rows(*grouped)
        if edges.can_group_in_graph(key):
            return Rows(*torch.ops.tempergat.group_rows(key, other, edge_id, num_rows))
        sorted_key, order = torch.sort(key, stable=True)
        rows = torch.arange(num_rows + 1, device=key.device, dtype=key.dtype)
        pointer = torch.searchsorted(sorted_key, rows).to(key.dtype)
        position = order.to(key.dtype)
        ends, identity = (t.index_select(0, order) for t in (other, edge_id))
        return Rows(pointer, ends, position, identity)


def check_edge_index(edge_index: Tensor) -> None:
    """Raises TypeError or ValueError unless the tensor can hold edges."""
    if not isinstance(edge_index, Tensor):
        raise TypeError(
            f"edge_index must be a tensor or a tempergat.Graph, got "
            f"{type(edge_index).__name__}; convert it with torch.as_tensor(edge_index)"
        )
    if edge_index.dtype not in (torch.int64, torch.int32):
        raise TypeError(
            f"edge_index must hold int64 or int32 node numbers, got "
            f"{edge_index.dtype}; convert it with edge_index.long()"
        )
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise ValueError(
            f"edge_index must have shape [2, num_edges], got "
            f"{list(edge_index.shape)}; row 0 holds sources, row 1 targets"
        )


def check_range(edge_index: Tensor, num_src: int, num_dst: int) -> None:
    """Raises ValueError if an edge refers to a node that does not exist."""
    if edge_index.numel() == 0:
        return
    low, high = torch.aminmax(edge_index, dim=1)
    check_limits(low.tolist(), high.tolist(), (num_src, num_dst))


def check_limits(
    lowest: Sequence[int], highest: Sequence[int], limits: tuple[int, int]
) -> None:
    """The same from the smallest and the largest source and target."""
    sides = ("source", "target")
    for side, limit, smallest, largest in zip(
        sides, limits, lowest, highest, strict=True
    ):
        worst = smallest if smallest < 0 else largest
        if smallest < 0 or largest >= limit:
            raise ValueError(
                f"edge_index refers to {side} node {worst}, but there are {limit} "
                f"{side} nodes (0..{limit - 1}); check the node numbering, or pass "
                f"as many nodes as x has rows"
            )
