"""Neighbour sampling by the C++ functions: a batch, and the graphs of its layers.

`sampling/reference.py` says what a batch is. The functions in `csrc/sampling` release
Python's global lock, so that batches are made in the background.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tempergat.base import UserError
from tempergat.ops.cpu import library
from tempergat.ops.cpu.edges import group
from tempergat.ops.graphs.graph import Graph
from tempergat.ops.graphs.rows import Relation, Rows

_POINTER, _NUMBER = ctypes.c_void_p, ctypes.c_int64
_function = library.library.function
_NEW = _function("sampler_new", _NUMBER, _POINTER, result=_POINTER)
_FREE = _function("sampler_free", _POINTER, result=None)
_SAMPLE = _function(
    "sampler_sample",
    *(_POINTER, _POINTER, _NUMBER, _NUMBER, _POINTER, _NUMBER),
    *(_POINTER, _NUMBER, _NUMBER, _NUMBER, _POINTER, _POINTER),
)
_WRITE = _function("sampler_write", *[_POINTER] * 6, result=None)
_ADD_LOOPS = _function("add_loops", *[_POINTER] * 2, *[_NUMBER] * 2, *[_POINTER] * 6)

# The numbers of the failures in csrc/call.h and csrc/sampling/hops.h.
_OUT_OF_MEMORY = 1
_FAILURES = {
    3: "a seed does not exist or is given more than once; check the seeds",
    4: "the grouped edges refer to nodes or edges that do not exist; make them again",
    5: "a batch has more than 2**31 edges; make batches or fanouts smaller",
}


def can_sample() -> bool:
    """Whether there is a library, and it has the functions."""
    return _NEW is not None


class CpuSampler:
    """Memory for sampling from graphs of some size; it serves one call at a time.

    It takes about four bytes for every node of the graph.

    Args:
        num_nodes: The number of nodes of each type.
    """

    def __init__(self, num_nodes: Sequence[int]) -> None:
        self.num_nodes = list(num_nodes)
        self._handle = _NEW(len(self.num_nodes), _words(self.num_nodes))
        if not self._handle:
            raise MemoryError(
                f"no memory to sample from a graph of {sum(self.num_nodes)} nodes"
            )

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            _FREE(self._handle)

    def sample(
        self,
        relations: Sequence[Relation],
        seed_type: int,
        seeds: Tensor,
        fanout: Sequence[Sequence[int]],
        key: int,
        replace: bool,
    ) -> tuple[Any, ...]:
        """Samples the neighbourhood of some seeds.

        Args:
            relations: The edges of each type.
            seed_type: The number of the seeds' node type.
            seeds: Different nodes, int64.
            fanout: How many neighbours are drawn, by relation and hop; -1 for all.
            key: The key of the batch.
            replace: Whether a neighbour may be drawn more than once.

        Returns:
            The fields of `SampledHops`.

        Raises:
            UserError: A seed or an edge refers to what does not exist.
        """
        hops, types = len(fanout[0]), len(self.num_nodes)
        nodes = _words([0] * types * (hops + 1))
        edges = _words([0] * len(fanout) * hops)
        seeds = seeds.contiguous()
        words = _words([word for edge in relations for word in _described(edge)])
        status = _SAMPLE(
            self._handle,
            words,
            len(relations),
            seed_type,
            seeds.data_ptr(),
            seeds.size(0),
            _words([count for counts in fanout for count in counts]),
            hops,
            key,
            int(replace),
            nodes,
            edges,
        )
        if status == _OUT_OF_MEMORY:
            raise MemoryError(
                f"no memory for the neighbourhood of {seeds.size(0)} seeds; make "
                "batches or fanouts smaller"
            )
        if status:
            raise UserError(f"cannot sample: {_FAILURES[status]}")
        return self._written(_cut(nodes, hops + 1), _cut(edges, hops))

    def _written(
        self, nodes: list[list[int]], edges: list[list[int]]
    ) -> tuple[Any, ...]:
        n_id = [_empty(sum(counts), dtype=torch.int64) for counts in nodes]
        slot = [_empty(sum(counts), dtype=torch.int64) for counts in edges]
        source, target = ([_empty(sum(counts)) for counts in edges] for _ in range(2))
        pointer = None
        if len(nodes) == len(edges) == 1:
            pointer = _empty(sum(nodes[0][:-1]) + 1)
        _WRITE(
            self._handle,
            *(
                _words([x.data_ptr() for x in xs])
                for xs in (n_id, source, target, slot)
            ),
            0 if pointer is None else pointer.data_ptr(),
        )
        return n_id, source, target, slot, pointer, nodes, edges


def _described(relation: Relation) -> tuple[int, ...]:
    """The words of a Relation in csrc/sampling/hops.h."""
    pointer, source = relation.pointer, relation.source
    return (
        *(pointer.data_ptr(), pointer.element_size()),
        *(source.data_ptr(), source.element_size()),
        source.size(0),
        relation.source_type,
        relation.target_type,
    )


def _words(numbers: Sequence[int]) -> Any:
    return (ctypes.c_int64 * len(numbers))(*numbers)


def _cut(numbers: Any, length: int) -> list[list[int]]:
    values = list(numbers)
    return [values[k : k + length] for k in range(0, len(values), length)]


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
    if _ADD_LOOPS is None:
        return None
    count, (num_src, num_dst) = source.size(0), sizes
    if not self_loops:
        edge_id = torch.arange(count, dtype=torch.int32, device="cpu")
        src, dst, rows = source, target, Rows(pointer, source, edge_id, edge_id)
    else:
        parts, pointer = _empty(5, count + num_dst), _empty(num_dst + 1)
        kept = _ADD_LOOPS(
            *(source.data_ptr(), target.data_ptr(), count, num_dst),
            *(x.data_ptr() for x in (*parts[:3], pointer, *parts[3:])),
        )
        src, dst, edge_id, other, position = parts[:, : kept + num_dst]
        rows = Rows(pointer, other, position, _identities(position, edge_id))
    grouped = group(src, dst, edge_id, num_src) if by_source else None
    return Graph.ready(
        src,
        dst,
        edge_id,
        sizes,
        by_target=rows,
        by_source=None if grouped is None else Rows(*grouped),
        num_edges=count,
        self_loops=self_loops,
    )


def _identities(position: Tensor, edge_id: Tensor) -> Tensor:
    """The identities of edges at some places of the graph's order."""
    # Identities are places, unless a self-loop was replaced: then the last one differs.
    count = edge_id.size(0)
    if count == 0 or int(edge_id[-1]) == count - 1:
        return position
    return edge_id.index_select(0, position)


def _empty(*shape: int, dtype: torch.dtype = torch.int32) -> Tensor:
    return torch.empty(shape, dtype=dtype, device="cpu")
