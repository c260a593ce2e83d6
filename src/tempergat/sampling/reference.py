"""Neighbour sampling in plain torch: slow, and the specification of all engines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from tempergat.ops import Relation
from tempergat.sampling.draws import Key, choose, target_keys


class SampledHops(NamedTuple):
    """The sampled neighbourhood of a batch of seeds, the same from every engine.

    A hop expands the nodes that were new in the hop before, so every node's neighbours
    are drawn once. Nodes: the seeds in their order, then for each hop its new nodes,
    ascending. Edges: hop by hop, by target, and by their slot; so the edges of a
    relation are sorted by target.

    Lists have an entry for each node type or each relation. A graph without types has
    one of both.

    Attributes:
        n_id: The nodes' numbers in the whole graph, by node type, int64.
        source: Place in ``n_id`` of each edge's source, by relation, int32.
        target: Place in ``n_id`` of each edge's target, by relation, int32, ascending.
        slot: Each edge's slot among the edges by target, by relation, int64.
        pointer: With one node type and one relation: where the edges of each target
            begin and end, int32; None otherwise. Its targets are the nodes of all hops
            but the last, which are not expanded.
        nodes_per_hop: Number of seeds, then of new nodes in each hop, by node type.
        edges_per_hop: Number of edges in each hop, by relation.
    """

    n_id: list[Tensor]
    source: list[Tensor]
    target: list[Tensor]
    slot: list[Tensor]
    pointer: Tensor | None
    nodes_per_hop: list[list[int]]
    edges_per_hop: list[list[int]]


def sample(
    relations: Sequence[Relation],
    num_nodes: Sequence[int],
    seed_type: int,
    seeds: Tensor,
    fanout: Sequence[Sequence[int]],
    key: Key,
    replace: bool,
) -> SampledHops:
    """Samples the neighbourhood of some seeds.

    Args:
        relations: The edges of each type, in the order of ``data.edge_types``.
        num_nodes: The number of nodes of each type.
        seed_type: The number of the seeds' node type.
        seeds: Different nodes, int64.
        fanout: How many neighbours of a node are drawn, by relation and hop; -1 takes
            all.
        key: Seed, epoch and step, on which the draws depend.
        replace: Whether a neighbour may be drawn more than once.
    """
    none = seeds.new_empty(0)
    # The nodes of each type, hop by hop, and each node's place among them, or -1.
    nodes = [[none] for _ in num_nodes]
    nodes[seed_type] = [seeds]
    place = [seeds.new_full((count,), -1) for count in num_nodes]
    place[seed_type][seeds] = torch.arange(seeds.size(0), device=seeds.device)
    targets: list[list[Tensor]] = [[] for _ in relations]
    slots: list[list[Tensor]] = [[] for _ in relations]

    for hop in range(len(fanout[0])):
        reached = [[none] for _ in num_nodes]
        for number, relation in enumerate(relations):
            expanded = nodes[relation.target_type][-1]
            keys = target_keys(key, hop, number, expanded)
            count = fanout[number][hop]
            row, slot = _sample_rows(relation, expanded, keys, count, replace)
            targets[number].append(place[relation.target_type][expanded[row]])
            slots[number].append(slot)
            reached[relation.source_type].append(relation.source[slot].long())
        for kind, lists in enumerate(reached):
            new = torch.unique(torch.cat(lists), sorted=True)
            new = new[place[kind][new] < 0]
            before = sum(part.size(0) for part in nodes[kind])
            place[kind][new] = torch.arange(new.size(0), device=new.device) + before
            nodes[kind].append(new)

    slot_of = [torch.cat(parts) for parts in slots]
    target = [torch.cat(parts).int() for parts in targets]
    nodes_per_hop = [[x.size(0) for x in parts] for parts in nodes]
    pointer = None
    if len(nodes) == len(relations) == 1:
        rows = torch.arange(sum(nodes_per_hop[0][:-1]) + 1, device=seeds.device)
        pointer = torch.searchsorted(target[0], rows.int()).int()
    return SampledHops(
        [torch.cat(parts) for parts in nodes],
        [
            place[relation.source_type][relation.source[slot].long()].int()
            for relation, slot in zip(relations, slot_of, strict=True)
        ],
        target,
        slot_of,
        pointer,
        nodes_per_hop,
        [[x.size(0) for x in parts] for parts in slots],
    )


def _sample_rows(
    relation: Relation,
    targets: Tensor,
    keys: Tensor,
    count: int,
    replace: bool,
) -> tuple[Tensor, Tensor]:
    """Which target each sampled edge belongs to, by its place, and the edge's slot."""
    begin = relation.pointer[targets].long()
    degree = relation.pointer[targets + 1].long() - begin
    # With replacement even a target with few edges is drawn from ``count`` times.
    draws = (degree > (0 if replace else count)) & (count >= 0)
    some, all_of = draws.nonzero().squeeze(1), (~draws).nonzero().squeeze(1)
    chosen = choose(keys[some], degree[some], max(count, 0), replace)
    taken = degree[all_of]
    first = torch.repeat_interleave(taken.cumsum(0) - taken, taken)
    offset = torch.arange(first.size(0), device=first.device) - first
    row = torch.cat([
        some.repeat_interleave(chosen.size(1)),
        all_of.repeat_interleave(taken),
    ])  # fmt: skip
    position = torch.cat([chosen.flatten(), offset])
    # Stable: the positions of a target are ascending already.
    row, order = torch.sort(row, stable=True)
    return row, begin[row] + position[order]
