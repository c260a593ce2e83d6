"""Groups the edges of small and large graphs by one end, by the C++ functions.

The results are those of torch's stable sort in `ops/graph.py`, which serves all other
devices, and the CPU where there is no library.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tempergat.ops.cpu import library
from tempergat.ops.torch_internals import in_dispatch_mode, in_transform, is_tracing


def can_group(index: Tensor, largest: int) -> bool:
    """Whether the functions below take edges that are given by this tensor.

    Args:
        index: The tensor.
        largest: The largest number among nodes and edges.
    """
    # Only torch's own tensors surely have memory. The results are int32.
    return (
        type(index) is Tensor
        and library.library.prepares_graphs
        and index.is_cpu
        and largest < 2**31
        and not (is_tracing() or in_transform() or in_dispatch_mode())
    )


def group_edges(
    edge_index: Tensor, sizes: tuple[int, int], num_loops: int
) -> tuple[Tensor, ...] | None:
    """Checks edges, replaces their self-loops if asked to, and groups them by target.

    Args:
        edge_index: The edges, int64 or int32, [2, E].
        sizes: The number of source and of target nodes.
        num_loops: 0, or ``min(sizes)`` to replace all self-loops by that many.

    Returns:
        Source, target and identity of every edge, then the four parts of the edges by
        target; None if an edge refers to a node that does not exist.
    """
    count = edge_index.size(1) + num_loops
    out = tuple(_empty(count) for _ in range(3))
    out += (_empty(sizes[1] + 1), *[_empty(count) for _ in range(3)])
    kept = library.library.group_edges(edge_index, sizes, num_loops > 0, out)
    if kept < 0:
        return None
    if kept + num_loops == count:
        return out
    count = kept + num_loops
    return tuple(x if k == 3 else x[:count] for k, x in enumerate(out))


def group(
    key: Tensor, other: Tensor, edge_id: Tensor, num_rows: int
) -> tuple[Tensor, ...] | None:
    """The four parts of edges grouped by ``key``; all tensors are int32.

    None if a key is not the number of a row.
    """
    edges = tuple(x.contiguous() for x in (key, other, edge_id))
    out = (_empty(num_rows + 1), *[_empty(key.size(0)) for _ in range(3)])
    return out if library.library.group(edges, num_rows, out) else None


def _empty(size: int) -> Tensor:
    return torch.empty(size, dtype=torch.int32, device="cpu")
