"""The graph as attention needs it: edges grouped by target and by source."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tempergat.ops.graphs.rows import Relation as Relation
from tempergat.ops.graphs.rows import Rows as Rows
from tempergat.ops.graphs.rows import (
    check_edge_index,
    check_range,
    group_rows,
    sort_edges,
)
from tempergat.ops.torch_internals import (
    GetAttrKey,
    ordinary_tensors,
    register_pytree_node,
)


class Graph:
    r"""A directed graph, checked once and sorted once, for any number of layers.

    It may be passed to a layer in the place of ``edge_index``.

    Args:
        edge_index: Source and target of every edge, int64 or int32, [2, E].
        num_nodes: Number of nodes, or a pair (sources, targets) if bipartite.
        self_loops: Replace the self-loops of ``edge_index`` by exactly one for
            every node that is both source and target, after all other edges.
        check: Compare the indices with ``num_nodes`` (reads them once).
        padded: Keep every shape independent of the data, because a compiler cannot know
            how many self-loops there are: a replaced self-loop stays in its place but
            points to the row ``num_dst``, which belongs to no node.
    """

    src: Tensor
    dst: Tensor
    edge_id: Tensor
    # How often the graph stands side by side with itself; see `repeat`.
    copies = 1
    # In a CUDA graph of sampled training: how many sources and targets the batch has,
    # 0-d tensors. Rows after them have no edges.
    in_use: tuple[Tensor, Tensor] | None = None

    def __init__(
        self,
        edge_index: Tensor,
        num_nodes: int | tuple[int, int],
        *,
        self_loops: bool = False,
        check: bool = True,
        padded: bool = False,
    ) -> None:
        self.num_src, self.num_dst = (
            (num_nodes, num_nodes) if isinstance(num_nodes, int) else num_nodes
        )
        check_edge_index(edge_index)
        self.num_edges = edge_index.size(1)
        self.self_loops = self_loops
        self.index_dtype = edge_index.dtype
        self.padded = self_loops and padded
        self._looped: Graph | None = None
        self._by_target: Rows | None
        self._by_source: Rows | None
        self.src, self.dst, self.edge_id, self._by_target, self._by_source = sort_edges(
            edge_index, (self.num_src, self.num_dst), self_loops, check, padded
        )

    @classmethod
    def from_csr(cls, rowptr: Tensor, col: Tensor, num_src: int) -> Graph:
        """The graph of edges that are grouped by target already; nothing is sorted.

        Args:
            rowptr: Where the edges of each target begin and end, [num_dst + 1].
            col: The source of every edge, [E]; the graph's edges have this order.
            num_src: Number of source nodes.

        Raises:
            ValueError: The two do not describe a graph of so many sources.
        """
        counts = rowptr.diff()
        if rowptr.dim() != 1 or col.dim() != 1 or rowptr.size(0) == 0:
            raise ValueError(
                f"rowptr and col must have one dimension, rowptr at least one entry; "
                f"got {list(rowptr.shape)} and {list(col.shape)}"
            )
        if rowptr[0] != 0 or rowptr[-1] != col.size(0) or bool((counts < 0).any()):
            raise ValueError(
                f"rowptr must rise from 0 to the number of edges, {col.size(0)}; it "
                f"goes from {int(rowptr[0])} to {int(rowptr[-1])}"
            )
        sizes = (num_src, rowptr.size(0) - 1)
        dtype = torch.int32 if max(*sizes, col.size(0)) < 2**31 else torch.int64
        rows = torch.arange(sizes[1], device=col.device)
        dst = rows.repeat_interleave(counts, output_size=col.size(0))
        check_range(torch.stack([col.long(), dst]), *sizes)
        src, edge_id = col.to(dtype, copy=True), torch.arange(col.size(0), dtype=dtype)
        edge_id = edge_id.to(col.device)
        by_target = Rows(rowptr.to(dtype, copy=True), src, edge_id, edge_id)
        return cls.ready(src, dst.to(dtype), edge_id, sizes, by_target=by_target)

    @classmethod
    def of_rows(cls, by_target: Rows, num_src: int) -> Graph:
        """The graph of edges that are grouped by target, in their order before."""
        pointer, other, position, edge_id = by_target
        slots = torch.arange(other.size(0), device=other.device, dtype=pointer.dtype)
        # An edge that belongs to no node has the row num_dst.
        row = torch.searchsorted(pointer, slots, right=True).to(other.dtype) - 1
        slot_of = torch.empty_like(slots).index_copy(0, position.long(), slots)
        src, dst, edge_id = (x.index_select(0, slot_of) for x in (other, row, edge_id))
        sizes, dtype = (num_src, pointer.size(0) - 1), other.dtype
        graph = cls.ready(
            src, dst, edge_id, sizes, by_target=by_target, index_dtype=dtype
        )
        graph.padded = True
        return graph

    @classmethod
    def ready(
        cls,
        src: Tensor,
        dst: Tensor,
        edge_id: Tensor,
        num_nodes: tuple[int, int],
        *,
        by_target: Rows,
        by_source: Rows | None = None,
        num_edges: int | None = None,
        self_loops: bool = False,
        index_dtype: torch.dtype = torch.int64,
    ) -> Graph:
        """A graph of finished parts: nothing is sorted, copied or checked.

        Args:
            src: Source of every edge, in the graph's edge order.
            dst: Target of every edge.
            edge_id: Identity of every edge for random numbers.
            num_nodes: Number of source and of target nodes.
            by_target: The edges grouped by target.
            by_source: The edges grouped by source, if a gradient will be taken.
            num_edges: With self-loops, the number of edges before they were replaced;
                the number of all edges otherwise.
            self_loops: Whether the parts hold exactly one self-loop for every node
                that is both source and target, after all other edges.
            index_dtype: The type of ``edge_index``.
        """
        count = src.size(0) if num_edges is None else num_edges
        children = (src, dst, edge_id, by_target, by_source, None)
        facts = (*num_nodes, count, self_loops, False, index_dtype)
        return _unflatten(children, facts)

    def repeat(self, copies: int) -> Graph:
        """So many copies of the graph side by side, for many sets of features at once.

        Nodes and edges of copy c come after those of copy c - 1. Kernels read the rows
        of this graph for each copy; nothing is copied or sorted.
        """
        return self if copies == 1 else RepeatedGraph(self, copies)

    @property
    def num_all_edges(self) -> int:
        """The number of edges, added self-loops included."""
        return self.src.size(0)

    @property
    def num_loops(self) -> int:
        """How many self-loops were added, at the end of the edge order."""
        return min(self.num_src, self.num_dst) if self.self_loops else 0

    @property
    def edge_index(self) -> Tensor:
        """The edges in PyG's order: the given ones, then the added self-loops."""
        return torch.stack([self.src, self.dst]).to(self.index_dtype)

    @property
    def device(self) -> torch.device:
        return self.src.device

    @property
    def by_target(self) -> Rows:
        """The edges grouped by target."""
        if self._by_target is None:
            self._by_target = group_rows(self.dst, self.src, self.edge_id, self.num_dst)
        return self._by_target

    @property
    def by_source(self) -> Rows:
        """The edges grouped by source."""
        if self._by_source is None:
            # A padded edge belongs to no row here either.
            src = self.src
            if self.padded:
                src = torch.where(self.dst == self.num_dst, self.num_src, src)
            self._by_source = group_rows(src, self.dst, self.edge_id, self.num_src)
        return self._by_source

    def with_self_loops(self) -> Graph:
        """The same graph with exactly one self-loop per node, made once."""
        if self.self_loops:
            return self
        if self._looped is None:
            size = (self.num_src, self.num_dst)
            with ordinary_tensors(self.src):
                self._looped = Graph(
                    self.edge_index, size, self_loops=True, check=False
                )
        return self._looped

    def to(self, device: torch.device | str) -> Graph:
        """The same graph on another device."""
        if torch.device(device) == self.device:
            return self
        children, context = _flatten(self)
        moved = [
            Rows(*(t.to(device) for t in c))
            if isinstance(c, Rows)
            else (c.to(device) if c is not None else None)
            for c in children
        ]
        return _unflatten(moved, context)

    def __repr__(self) -> str:
        size = (
            f"{self.num_src}"
            if self.num_src == self.num_dst
            else f"({self.num_src}, {self.num_dst})"
        )
        loops = ", self_loops=True" if self.self_loops else ""
        return f"Graph(num_nodes={size}, num_edges={self.num_edges}{loops})"


class RepeatedGraph(Graph):
    """Copies of a graph side by side, made by `Graph.repeat`.

    ``by_target`` and ``by_source`` are the rows of one copy.
    """

    def __init__(self, one: Graph, copies: int) -> None:
        self.one = one
        self.copies = copies
        self.num_src, self.num_dst = copies * one.num_src, copies * one.num_dst
        self.num_edges = copies * one.num_edges
        self.self_loops, self.padded = one.self_loops, one.padded
        self.index_dtype = one.index_dtype

    @property
    def src(self) -> Tensor:  # type: ignore[override]
        """The source of every edge, written out."""
        return self._of_copies(self.one.src, self.one.num_src)

    @property
    def dst(self) -> Tensor:  # type: ignore[override]
        """The target of every edge, written out."""
        dst = self._of_copies(self.one.dst, self.one.num_dst)
        if self.padded:
            # A padded edge belongs to no row of any copy.
            dst = torch.where(
                self._of_copies(self.one.dst, 0) == self.one.num_dst, self.num_dst, dst
            )
        return dst

    @property
    def edge_id(self) -> Tensor:  # type: ignore[override]
        """The identity of every edge; kernels put the copy's number into the seed."""
        return self._of_copies(self.one.edge_id, 2**32)

    def _of_copies(self, x: Tensor, step: int) -> Tensor:
        """x for every copy, larger by ``step`` in each."""
        first = torch.arange(self.copies, device=x.device) * step
        return (x.long() + first.unsqueeze(-1)).flatten()

    @property
    def num_all_edges(self) -> int:
        return self.copies * self.one.num_all_edges

    @property
    def device(self) -> torch.device:
        return self.one.device

    @property
    def by_target(self) -> Rows:
        return self.one.by_target

    @property
    def by_source(self) -> Rows:
        return self.one.by_source

    def to(self, device: torch.device | str) -> Graph:
        return self.one.to(device).repeat(self.copies)

    def with_self_loops(self) -> Graph:
        return self.one.with_self_loops().repeat(self.copies)

    def __repr__(self) -> str:
        return f"{self.one!r}.repeat({self.copies})"


# What a graph holds, in the order of flattening: tensors, then facts.
_PARTS = ("src", "dst", "edge_id", "_by_target", "_by_source", "_looped")
_FACTS = ("num_src", "num_dst", "num_edges", "self_loops", "padded", "index_dtype")


def _flatten(graph: Graph) -> tuple[list[Any], Any]:
    children = [getattr(graph, name) for name in _PARTS]
    return children, tuple(getattr(graph, name) for name in _FACTS)


def _flatten_with_keys(graph: Graph) -> tuple[list[Any], Any]:
    children, facts = _flatten(graph)
    keys = [GetAttrKey(name.removeprefix("_")) for name in _PARTS]
    return list(zip(keys, children, strict=True)), facts


def _unflatten(children: Any, facts: Any) -> Graph:
    graph = Graph.__new__(Graph)
    for name, value in zip(_PARTS + _FACTS, (*children, *facts), strict=True):
        setattr(graph, name, value)
    return graph


register_pytree_node(
    Graph,
    _flatten,
    _unflatten,
    serialized_type_name="tempergat.Graph",
    flatten_with_keys_fn=_flatten_with_keys,
)
