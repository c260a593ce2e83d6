"""Neighbour sampling by the C++ functions; `csrc/sampling/hops.h` does the work.

`tempergat.sampling` says what a batch is. The functions release Python's global lock,
so that batches are made in the background.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tempergat.base import UserError
from tempergat.ops.cpu import library

_POINTER, _NUMBER = ctypes.c_void_p, ctypes.c_int64
_find = library.library.function
_NEW = _find("sampler_new", _NUMBER, _POINTER, result=_POINTER)
_FREE = _find("sampler_free", _POINTER, result=None)
_SAMPLE = _find(
    "sampler_sample",
    *(_POINTER, _POINTER, _NUMBER, _NUMBER, _POINTER, _NUMBER),
    *(_POINTER, _NUMBER, _NUMBER, _NUMBER, _POINTER, _POINTER),
)
_WRITE = _find("sampler_write", *[_POINTER] * 6, result=None)

# The numbers of the failures in csrc/call.h and csrc/sampling/hops.h.
_OUT_OF_MEMORY = 1
_FAILURES = {
    3: "a seed does not exist or is given more than once; check the seeds",
    4: "the grouped edges refer to nodes or edges that do not exist; make them again",
    5: "a batch has more than 2**31 edges; make batches or fanouts smaller",
}


class Relation(NamedTuple):
    """The edges of one type, grouped by target: where they are in memory.

    Attributes:
        pointer: Where the edges of each target begin and end, int32 or int64.
        source: The source of each edge, int32 or int64.
        src_type: The number of the sources' node type.
        dst_type: The number of the targets' node type.
    """

    pointer: Tensor
    source: Tensor
    src_type: int
    dst_type: int


class Drawn(NamedTuple):
    """A sampled batch: lists with one entry per node type or relation."""

    n_id: list[Tensor]
    source: list[Tensor]
    target: list[Tensor]
    slot: list[Tensor]
    pointer: Tensor | None
    nodes_per_hop: list[list[int]]
    edges_per_hop: list[list[int]]


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
        labor: bool,
    ) -> Drawn:
        """Samples the neighbourhood of some seeds.

        Args:
            relations: The edges of each type.
            seed_type: The number of the seeds' node type.
            seeds: Different nodes, int64.
            fanout: How many neighbours are drawn, by relation and hop; -1 for all.
            key: The key of the batch.
            replace: Whether a neighbour may be drawn more than once.
            labor: Whether targets share their draws.

        Raises:
            UserError: A seed or an edge refers to what does not exist.
        """
        hops, types = len(fanout[0]), len(self.num_nodes)
        nodes, edges = (
            _words([0] * types * (hops + 1)),
            _words([0] * len(fanout) * hops),
        )
        seeds = seeds.contiguous()
        words = _words(
            [word for relation in relations for word in _described(relation)]
        )
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
            2 if labor else int(replace),
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

    def _written(self, nodes: list[list[int]], edges: list[list[int]]) -> Drawn:
        n_id = [_empty(sum(counts), torch.int64) for counts in nodes]
        slot = [_empty(sum(counts), torch.int64) for counts in edges]
        source, target = (
            [_empty(sum(counts), torch.int32) for counts in edges] for _ in range(2)
        )
        pointer = None
        if len(nodes) == len(edges) == 1:
            pointer = _empty(sum(nodes[0][:-1]) + 1, torch.int32)
        _WRITE(
            self._handle,
            *(
                _words([x.data_ptr() for x in xs])
                for xs in (n_id, source, target, slot)
            ),
            0 if pointer is None else pointer.data_ptr(),
        )
        return Drawn(n_id, source, target, slot, pointer, nodes, edges)


def _described(relation: Relation) -> tuple[int, ...]:
    """The words of a Relation in csrc/sampling/hops.h."""
    pointer, source = relation.pointer, relation.source
    return (
        *(pointer.data_ptr(), pointer.element_size()),
        *(source.data_ptr(), source.element_size()),
        source.size(0),
        relation.src_type,
        relation.dst_type,
    )


def _words(numbers: Sequence[int]) -> Any:
    return (ctypes.c_int64 * len(numbers))(*numbers)


def _cut(numbers: Any, length: int) -> list[list[int]]:
    found = list(numbers)
    return [found[k : k + length] for k in range(0, len(found), length)]


def _empty(size: int, dtype: torch.dtype) -> Tensor:
    return torch.empty(size, dtype=dtype, device="cpu")
