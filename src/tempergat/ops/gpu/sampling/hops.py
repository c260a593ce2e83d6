"""Samples all hops of a batch on the device.

No number is read back while the largest possible batch is small: its arrays are made
for that size, and the device counts what is in use. Otherwise the host reads how large
a hop is before it makes room for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from tempergat.base import UserError
from tempergat.ops.gpu.launching.launch import divide_up
from tempergat.ops.gpu.sampling import draws, nodes
from tempergat.ops.graphs.graph import Relation

# Up to so many edges, room is made for the largest possible batch.
_MOST_UNREAD = 1 << 24


class Sampled(NamedTuple):
    """A batch in arrays that may be longer than it is.

    Attributes:
        n_id: The nodes' numbers in the whole graph, by type, int64.
        pointer: Where the edges of each row begin and end, by relation, int32.
        source: The row of each edge's source, by relation, int32.
        target: The row of each edge's target, by relation, int32.
        slot: Each edge's slot in the whole graph, by relation, int64.
        counts: How many nodes of each type, then how many edges of each relation there
            are before each hop and after the last, int32.
    """

    n_id: list[Tensor]
    pointer: list[Tensor]
    source: list[Tensor]
    target: list[Tensor]
    slot: list[Tensor]
    counts: Tensor

    @property
    def nodes(self) -> Tensor:
        """How many nodes of each type there are before each hop, after 0 for none."""
        return self.counts[: len(self.n_id)]

    @property
    def edges(self) -> Tensor:
        """How many edges of each relation there are before each hop."""
        return self.counts[len(self.n_id) :]

    def read(self, hops: int) -> tuple[list[list[int]], list[list[int]]]:
        """`nodes` and `edges` on the host; waits for the device once."""
        rows, types = self.counts.tolist(), len(self.n_id)
        nodes = [row[: hops + 2] for row in rows[:types]]
        return nodes, [row[: hops + 1] for row in rows[types:]]


def sample(
    relations: Sequence[Relation],
    num_nodes: Sequence[int],
    seed_type: int,
    seeds: Tensor,
    fanout: Sequence[Sequence[int]],
    key: Tensor,
    replace: bool,
) -> Sampled:
    """Samples the neighbourhood of some seeds.

    Args:
        relations: The edges of each type.
        num_nodes: The number of nodes of each type, below 2**31.
        seed_type: The number of the seeds' node type.
        seeds: Different nodes, int64; negative numbers at the end stand for none.
        fanout: How many neighbours are drawn by relation and hop; -1 takes all.
        key: The key of the batch's random numbers, int64, one number.
        replace: Whether a neighbour may be drawn more than once.

    Raises:
        UserError: A fanout is larger than the kernels can draw.
    """
    largest = max((k for hops in fanout for k in hops), default=0)
    if largest > draws.WIDEST:
        raise UserError(
            f"a fanout of {largest} is larger than the {draws.WIDEST} that are drawn "
            "on a GPU; use -1 to take all neighbours, or sample on the CPU"
        )
    batch = _Batch(relations, num_nodes, seed_type, seeds, fanout, replace)
    for hop in range(len(fanout[0])):
        batch.expand(hop, key)
    return batch.finish()


class _GrowingArray:
    """An array that grows."""

    def __init__(self, start: Tensor) -> None:
        self.tensor = start

    def with_room(self, count: int) -> Tensor:
        """The array, with room for so many numbers."""
        old = self.tensor
        if old.size(0) < count:
            self.tensor = old.new_empty(count)
            self.tensor[: old.size(0)] = old
        return self.tensor


class Bounds:
    """The most nodes and edges that a batch can have, hop by hop.

    Args:
        relations: The edges of each type.
        num_nodes: The number of nodes of each type.
        seed_type: The number of the seeds' node type.
        num_seeds: Number of seeds.
        fanout: How many neighbours are drawn by relation and hop; -1 takes all.
        replace: Whether a neighbour may be drawn more than once.

    Attributes:
        nodes: The most nodes of each type so far.
        new: The most of them that are new in the last hop.
        edges: The most edges of each relation so far.
    """

    def __init__(
        self,
        relations: Sequence[Relation],
        num_nodes: Sequence[int],
        seed_type: int,
        num_seeds: int,
        fanout: Sequence[Sequence[int]],
        replace: bool,
    ) -> None:
        self._relations, self._num_nodes = relations, num_nodes
        self._fanout, self._replace = fanout, replace
        self.new = [0] * len(num_nodes)
        self.new[seed_type] = num_seeds
        self.nodes = list(self.new)
        self.edges = [0] * len(relations)

    def drawn(self, number: int, hop: int) -> int:
        """The most edges of a relation that a hop can have."""
        relation, fanout = self._relations[number], self._fanout[number][hop]
        drawn = self.new[relation.target_type] * fanout
        if self._replace and fanout >= 0:
            return drawn
        edges = relation.source.size(0)
        return edges if fanout < 0 else min(drawn, edges)

    def add(self, drawn: Sequence[int]) -> None:
        """Adds a hop, given the most edges of each relation that it can have."""
        reached = [0] * len(self._num_nodes)
        for number, relation in enumerate(self._relations):
            reached[relation.source_type] += drawn[number]
            self.edges[number] += drawn[number]
        for kind, count in enumerate(self._num_nodes):
            self.new[kind] = min(reached[kind], count - self.nodes[kind])
            self.nodes[kind] += self.new[kind]

    def add_all(self) -> None:
        """Adds all hops."""
        for hop in range(len(self._fanout[0])):
            self.add([self.drawn(i, hop) for i in range(len(self._relations))])

    @property
    def are_small(self) -> bool:
        """Whether room is made for the largest possible batch."""
        return sum(self.edges) <= _MOST_UNREAD


class _Batch:
    """The arrays of a batch while it is sampled."""

    def __init__(
        self,
        relations: Sequence[Relation],
        num_nodes: Sequence[int],
        seed_type: int,
        seeds: Tensor,
        fanout: Sequence[Sequence[int]],
        replace: bool,
    ) -> None:
        self.relations, self.fanout, self.replace = relations, fanout, replace
        types = len(num_nodes)
        # Rows begin at a multiple of 16 bytes, on which compiled kernels rely.
        width = divide_up(len(fanout[0]) + 2, 4) * 4
        self.counts = seeds.new_zeros(types + len(relations), width, dtype=torch.int32)
        self.nodes, self.edges = self.counts[:types], self.counts[types:]
        words = [nodes.words_of(count) for count in num_nodes]
        both = self.counts.new_zeros(2, sum(words))
        self.visited, self.fresh = (torch.split(x, words) for x in both)
        new = self.counts.new_empty
        self.row_of = [new(count) for count in num_nodes]
        self.n_id = [_GrowingArray(seeds.new_empty(0)) for _ in num_nodes]
        self.pointer = [_GrowingArray(self.counts.new_zeros(1)) for _ in relations]
        self.source = [_GrowingArray(new(0)) for _ in relations]
        self.target = [_GrowingArray(new(0)) for _ in relations]
        self.slot = [_GrowingArray(seeds.new_empty(0)) for _ in relations]
        facts = (relations, num_nodes, seed_type, seeds.size(0), fanout, replace)
        self.bounds, largest = Bounds(*facts), Bounds(*facts)
        largest.add_all()
        self.reads = not largest.are_small
        if not self.reads:
            self._make_room(largest)
        first = self.n_id[seed_type].with_room(seeds.size(0))
        row_of, visited = self.row_of[seed_type], self.visited[seed_type]
        nodes.begin(seeds.contiguous(), self.nodes[seed_type], first, row_of, visited)

    def _make_room(self, largest: Bounds) -> None:
        for room, count in zip(self.n_id, largest.nodes, strict=True):
            room.with_room(count)
        for number, count in enumerate(largest.edges):
            kind = self.relations[number].target_type
            self.pointer[number].with_room(largest.nodes[kind] + 1)
            for rooms in (self.source, self.target, self.slot):
                rooms[number].with_room(count)

    def expand(self, hop: int, key: Tensor) -> None:
        """Draws the neighbours of the nodes that the hop before has found."""
        drawn, bounds = [], self.bounds
        for number, relation in enumerate(self.relations):
            fanout, kind = self.fanout[number][hop], relation.target_type
            programs = divide_up(bounds.new[kind], draws.block_of(fanout))
            sums = self.nodes.new_empty(max(1, programs))
            targets = (self.n_id[kind].tensor, self.nodes[kind], relation.pointer)
            draws.count_edges(*targets, sums, hop, fanout, self.replace)
            new = int(sums.sum()) if self.reads else bounds.drawn(number, hop)
            drawn.append(new)
            room = bounds.edges[number] + new
            edges = [
                rooms[number].with_room(room)
                for rooms in (self.source, self.target, self.slot)
            ]
            pointer = self.pointer[number].with_room(bounds.nodes[kind] + 1)
            source = relation.source_type
            draws.draw_edges(
                (*targets, relation.source, key, sums),
                (self.visited[source], self.fresh[source]),
                (self.edges[number], pointer, *edges),
                (hop, number, fanout),
                self.replace,
            )
        before = list(bounds.nodes)
        bounds.add(drawn)
        for kind, count in enumerate(bounds.nodes):
            nodes.add_new_nodes(
                self.fresh[kind],
                self.visited[kind],
                self.nodes[kind],
                self.n_id[kind].with_room(count),
                self.row_of[kind],
                hop,
            )
        if self.reads:
            counts = self.nodes[:, hop + 2].tolist()
            bounds.new = [a - b for a, b in zip(counts, before, strict=True)]
            bounds.nodes = counts

    def finish(self) -> Sampled:
        """The batch, with rows in place of the sources' numbers."""
        last = len(self.fanout[0])
        for number, relation in enumerate(self.relations):
            nodes.relabel(
                self.source[number].tensor,
                self.row_of[relation.source_type],
                self.edges[number],
                last,
            )
        rooms = (self.n_id, self.pointer, self.source, self.target, self.slot)
        n_id, pointer, source, target, slot = ([r.tensor for r in x] for x in rooms)
        return Sampled(n_id, pointer, source, target, slot, self.counts)
