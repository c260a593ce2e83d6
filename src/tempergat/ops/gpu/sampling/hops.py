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
from tempergat.ops.gpu.sampling import draws, nodes

# Up to so many edges, room is made for the largest possible batch.
_MOST_UNREAD = 1 << 24


class Relation(NamedTuple):
    """Edges of one type, grouped by target.

    Attributes:
        pointer: Where the slots of each target begin and end, int64.
        source: The source of the edge in each slot, int32 or int64.
        source_type: The number of the sources' node type.
        target_type: The number of the targets' node type.
    """

    pointer: Tensor
    source: Tensor
    source_type: int
    target_type: int


class Sampled(NamedTuple):
    """A batch in arrays that may be longer than it is.

    Attributes:
        n_id: The nodes' numbers in the whole graph, by type, int64.
        pointer: Where the edges of each row begin and end, by relation, int32.
        source: The row of each edge's source, by relation, int32.
        target: The row of each edge's target, by relation, int32.
        slot: Each edge's slot in the whole graph, by relation, int64.
        nodes: How many nodes of each type there are before each hop, int32,
            [types, hops + 2 or more]; the last of the first hops + 2 is of all.
        edges: The same for the edges of each relation, [relations, hops + 1 or more].
    """

    n_id: list[Tensor]
    pointer: list[Tensor]
    source: list[Tensor]
    target: list[Tensor]
    slot: list[Tensor]
    nodes: Tensor
    edges: Tensor

    def read(self, hops: int) -> tuple[list[list[int]], list[list[int]]]:
        """`nodes` and `edges` on the host; waits for the device once."""
        both = torch.cat([self.nodes.flatten(), self.edges.flatten()]).tolist()
        width = self.nodes.size(1)
        rows = [both[i : i + width] for i in range(0, len(both), width)]
        types = self.nodes.size(0)
        return (
            [row[: hops + 2] for row in rows[:types]],
            [row[: hops + 1] for row in rows[types:]],
        )


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


class _Room:
    """An array that grows."""

    def __init__(self, start: Tensor) -> None:
        self.tensor = start

    def for_all(self, count: int) -> Tensor:
        """The array, with room for so many numbers."""
        old = self.tensor
        if old.size(0) < count:
            self.tensor = old.new_empty(count)
            self.tensor[: old.size(0)] = old
        return self.tensor


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
        self.relations, self.num_nodes = relations, num_nodes
        self.fanout, self.replace = fanout, replace
        types = len(num_nodes)
        # Rows begin at a multiple of 16 bytes, on which compiled kernels rely.
        width = (len(fanout[0]) + 2 + 3) // 4 * 4
        facts = seeds.new_zeros(types + len(relations), width, dtype=torch.int32)
        self.nodes, self.edges = facts[:types], facts[types:]
        words = [nodes.words_of(count) for count in num_nodes]
        both = facts.new_zeros(2, sum(words))
        self.visited, self.fresh = (torch.split(x, words) for x in both)
        self.row_of = [facts.new_empty(count) for count in num_nodes]
        self.n_id = [_Room(seeds.new_empty(0)) for _ in num_nodes]
        self.pointer = [_Room(facts.new_zeros(1)) for _ in relations]
        self.source = [_Room(facts.new_empty(0)) for _ in relations]
        self.target = [_Room(facts.new_empty(0)) for _ in relations]
        self.slot = [_Room(seeds.new_empty(0)) for _ in relations]
        # Upper bounds: nodes of each type, those new in the last hop, and edges.
        self.most_new = [0] * types
        self.most_new[seed_type] = seeds.size(0)
        self.most = list(self.most_new)
        self.most_edges = [0] * len(relations)
        self.reads = not self._make_room()
        first = self.n_id[seed_type].for_all(seeds.size(0))
        row_of, visited = self.row_of[seed_type], self.visited[seed_type]
        nodes.begin(seeds.contiguous(), self.nodes[seed_type], first, row_of, visited)

    def _make_room(self) -> bool:
        """Makes room for the largest possible batch, unless that is too large."""
        start = list(self.most), list(self.most_new), list(self.most_edges)
        for hop in range(len(self.fanout[0])):
            drawn = [self._bound(number, hop) for number in range(len(self.relations))]
            self._add_bounds(drawn)
        sizes = list(self.most), list(self.most_edges)
        self.most, self.most_new, self.most_edges = start
        if sum(sizes[1]) > _MOST_UNREAD:
            return False
        for room, count in zip(self.n_id, sizes[0], strict=True):
            room.for_all(count)
        for number, count in enumerate(sizes[1]):
            kind = self.relations[number].target_type
            self.pointer[number].for_all(sizes[0][kind] + 1)
            for rooms in (self.source, self.target, self.slot):
                rooms[number].for_all(count)
        return True

    def _bound(self, number: int, hop: int) -> int:
        """The most edges of a relation that a hop can have."""
        relation, fanout = self.relations[number], self.fanout[number][hop]
        drawn = self.most_new[relation.target_type] * fanout
        if self.replace and fanout >= 0:
            return drawn
        edges = relation.source.size(0)
        return edges if fanout < 0 else min(drawn, edges)

    def _add_bounds(self, drawn: Sequence[int]) -> None:
        """Adds a hop to the upper bounds, given the most edges it can have."""
        found = [0] * len(self.num_nodes)
        for number, relation in enumerate(self.relations):
            found[relation.source_type] += drawn[number]
            self.most_edges[number] += drawn[number]
        for kind, count in enumerate(self.num_nodes):
            self.most_new[kind] = min(found[kind], count - self.most[kind])
            self.most[kind] += self.most_new[kind]

    def expand(self, hop: int, key: Tensor) -> None:
        """Draws the neighbours of the nodes that the hop before has found."""
        drawn = []
        for number, relation in enumerate(self.relations):
            fanout, kind = self.fanout[number][hop], relation.target_type
            programs = draws.programs_of(self.most_new[kind], fanout)
            sums = self.nodes.new_empty(programs)
            targets = (self.n_id[kind].tensor, self.nodes[kind], relation.pointer)
            draws.count_edges(*targets, sums, hop, fanout, self.replace)
            new = int(sums.sum()) if self.reads else self._bound(number, hop)
            drawn.append(new)
            room = self.most_edges[number] + new
            edges = [
                rooms[number].for_all(room)
                for rooms in (self.source, self.target, self.slot)
            ]
            pointer = self.pointer[number].for_all(self.most[kind] + 1)
            source = relation.source_type
            draws.draw_edges(
                (*targets, relation.source, key, sums),
                (self.visited[source], self.fresh[source]),
                (self.edges[number], pointer, *edges),
                (hop, number, fanout),
                self.replace,
            )
        before = list(self.most)
        self._add_bounds(drawn)
        for kind, count in enumerate(self.most):
            nodes.add_new_nodes(
                self.fresh[kind],
                self.visited[kind],
                self.nodes[kind],
                self.n_id[kind].for_all(count),
                self.row_of[kind],
                hop,
            )
        if self.reads:
            counts = self.nodes[:, hop + 2].tolist()
            self.most_new = [a - b for a, b in zip(counts, before, strict=True)]
            self.most = counts

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
        return Sampled(n_id, pointer, source, target, slot, self.nodes, self.edges)
