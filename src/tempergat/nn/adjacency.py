"""Converts every form of edges that PyG accepts to a graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.typing import SparseTensor
from torch_geometric.utils import (
    coalesce,
    is_sparse,
    to_edge_index,
    to_torch_coo_tensor,
    to_torch_csc_tensor,
    to_torch_csr_tensor,
)

from tempergat.ops import Graph, as_constant, tensor_cache


class Adjacency(NamedTuple):
    """A graph, and what depends on the form in which its edges were given.

    Attributes:
        graph: The graph.
        values: Edge features, where a sparse matrix has them as its values.
        pack: Returns attention weights together with the edges in their given form.
    """

    graph: Graph
    values: Tensor | None
    pack: Callable[[Tensor], Any]


def resolve(
    edge_index: Any,
    size: tuple[int, int],
    self_loops: bool,
    reverse: bool,
    static_shapes: bool,
    mode: str,
    cache: bool = True,
) -> Adjacency:
    """The graph of an ``edge_index`` argument.

    The graph of a tensor or of a torch sparse matrix is cached for as long as the
    tensor lives unchanged. That of a ``SparseTensor`` is built in every call.

    Args:
        edge_index: A [2, E] tensor, ``EdgeIndex``, ``Graph``, torch sparse matrix or
            ``SparseTensor`` (both kinds of matrix transposed, as PyG expects them).
        size: Number of source and target nodes.
        self_loops: Whether every node gets exactly one self-loop.
        reverse: Whether messages run from row 1 of ``edge_index`` to row 0.
        static_shapes: Whether a graph that is being traced may be padded.
        mode: The `execution_mode`.
        cache: Whether the graph of an earlier call may be used.

    Raises:
        ValueError: The edges do not fit the sizes or the layer's settings.
    """
    if isinstance(edge_index, Graph):
        graph = _checked_graph(edge_index, size, self_loops, reverse)
        return Adjacency(graph, None, lambda alpha: (graph.edge_index, alpha))
    if is_sparse(edge_index):
        return _from_matrix(edge_index, size, self_loops, reverse, cache)

    traced = mode == "traced"
    if traced:
        if isinstance(edge_index, EdgeIndex):
            edge_index = edge_index.as_tensor()
    elif isinstance(edge_index, Tensor):
        edge_index = as_constant(edge_index)

    def build() -> Graph:
        edges = edge_index
        if isinstance(edges, EdgeIndex):
            edges = edges.as_tensor()
        if reverse and isinstance(edges, Tensor) and edges.dim() == 2:
            edges = edges.flip(0)
        padded = static_shapes and traced
        graph = Graph(edges, size, self_loops=self_loops, padded=padded)
        if type(edge_index) is Tensor and not (traced or edge_index.is_meta):
            # What a loader says of a batch that it padded.
            graph.in_use = tensor_cache.find(edge_index, "in_use")
        return graph

    if cache and not traced and isinstance(edge_index, Tensor):
        key = (size, self_loops, reverse)
        # An EdgeIndex has a counter of its own, but no memory.
        inner = edge_index.as_tensor() if isinstance(edge_index, EdgeIndex) else None
        graph = tensor_cache.get(edge_index, key, build, inner, traced=False)
    else:
        graph = build()

    def pack(alpha: Tensor) -> tuple[Tensor, Tensor]:
        if not self_loops:
            return edge_index, alpha
        # PyG's self-loops are int64, and so are the edges it concatenates them to.
        edges = graph.edge_index.long()
        return edges.flip(0) if reverse else edges, alpha

    return Adjacency(graph, None, pack)


def forget_graphs() -> None:
    """Drops every graph and sparse feature matrix that layers keep between calls.

    A layer sorts the edges of an ``edge_index`` once and uses the result again until
    the tensor changes. Call this after a change that cannot be seen: of a CUDA tensor
    from outside of torch, or of single edges of a large CPU tensor from outside of
    torch. ``cache=False`` lets a layer keep nothing. `torch.utils.swap_tensors` takes
    a tensor that a layer has seen after this call.
    """
    tensor_cache.clear()


def _checked_graph(
    graph: Graph, size: tuple[int, int], self_loops: bool, reverse: bool
) -> Graph:
    if reverse:
        raise ValueError(
            "flow='target_to_source' cannot be combined with a tempergat.Graph; build "
            "the Graph from edge_index.flip(0) and use the default flow"
        )
    if (graph.num_src, graph.num_dst) != size:
        raise ValueError(
            f"the graph has {graph.num_src} source and {graph.num_dst} target nodes, "
            f"but x has {size[0]} and {size[1]} rows"
        )
    if graph.self_loops and not self_loops:
        raise ValueError(
            "the graph was made with self_loops=True, but the layer has "
            "add_self_loops=False; build the Graph without self_loops"
        )
    return graph.with_self_loops() if self_loops else graph


def _from_matrix(
    adj_t: Any, size: tuple[int, int], self_loops: bool, reverse: bool, cache: bool
) -> Adjacency:
    if reverse:
        raise ValueError(
            "flow='target_to_source' cannot be combined with a sparse matrix; pass "
            "its transpose, adj_t.t(), and use the default flow"
        )

    # The cached value must hold neither the matrix itself nor its autograd graph.
    def build() -> Graph:
        return Graph(matrix_edges(adj_t), size, self_loops=self_loops)

    if isinstance(adj_t, SparseTensor):
        graph, values = build(), adj_t.storage.value()
    else:
        key = (size, self_loops)
        graph = tensor_cache.get(adj_t, key, build) if cache else build()
        is_coo = adj_t.layout == torch.sparse_coo
        matrix = adj_t.coalesce() if is_coo else adj_t
        values = matrix.values() if adj_t.dim() > 2 else None

    def pack(alpha: Tensor) -> Any:
        entries = graph.edge_index.long().flip(0)
        shape = (size[1], size[0])
        if isinstance(adj_t, SparseTensor):
            row, col = entries
            return SparseTensor(row=row, col=col, value=alpha, sparse_sizes=shape)
        # The self-loops are the last edges, but stand among the entries.
        by_row = adj_t.layout != torch.sparse_csc
        entries, alpha = coalesce(entries, alpha, sort_by_row=by_row)
        to_matrix = _TO_MATRIX[adj_t.layout]
        return to_matrix(entries, alpha, shape, is_coalesced=True), alpha

    return Adjacency(graph, values, pack)


_TO_MATRIX = {
    torch.sparse_coo: to_torch_coo_tensor,
    torch.sparse_csr: to_torch_csr_tensor,
    torch.sparse_csc: to_torch_csc_tensor,
}


def matrix_edges(adj_t: Any) -> Tensor:
    """Source and target of every entry of a transposed sparse matrix, [2, E]."""
    if isinstance(adj_t, Tensor) and adj_t.layout == torch.sparse_coo:
        # PyG's function would count as a change of the matrix.
        return adj_t.detach().coalesce().indices().flip(0)
    entries: Tensor = to_edge_index(adj_t)[0]
    return entries.flip(0)


def num_targets(edge_index: Any) -> int | None:
    """The number of target nodes, where the edges come with one."""
    if isinstance(edge_index, Graph):
        return edge_index.num_dst
    if isinstance(edge_index, EdgeIndex):
        columns: int | None = edge_index.sparse_size(1)
        return columns
    return int(edge_index.size(0)) if is_sparse(edge_index) else None
