"""Neighbour sampling in plain torch: slow, and the specification of all engines."""

from __future__ import annotations

import torch
from torch import Tensor

from tempergat.sampling.engines.draws import (
    Key,
    choose,
    choose_shared,
    shared_key,
    target_keys,
)
from tempergat.sampling.engines.hops import EdgeType, SampledHops, TypedHops
from tempergat.sampling.storage.topology import Topology


def sample(
    topology: Topology,
    seeds: Tensor,
    fanout: list[int],
    key: Key,
    replace: bool,
    labor: bool = False,
) -> SampledHops:
    """Samples the neighbourhood of some seeds.

    Args:
        topology: The whole graph.
        seeds: Different nodes, int64.
        fanout: How many neighbours of a node are drawn in each hop; -1 takes all.
        key: Seed, epoch and step, on which the draws depend.
        replace: Whether a neighbour may be drawn more than once.
        labor: Whether targets share their draws; see `draws.choose_shared`.
    """
    node, edge = "node", ("node", "to", "node")
    hops = sample_typed(
        {edge: topology}, {node: topology.num_src}, node, seeds, {edge: fanout}, key,
        replace, labor,
    )  # fmt: skip
    nodes, target = hops.nodes_per_hop[node], hops.target[edge]
    rows = torch.arange(sum(nodes[:-1]) + 1, dtype=target.dtype, device=target.device)
    return SampledHops(
        hops.n_id[node],
        hops.source[edge],
        target,
        torch.searchsorted(target, rows).to(target.dtype),
        hops.slot[edge],
        nodes,
        hops.edges_per_hop[edge],
    )


def sample_typed(
    topologies: dict[EdgeType, Topology],
    num_nodes: dict[str, int],
    seed_type: str,
    seeds: Tensor,
    fanout: dict[EdgeType, list[int]],
    key: Key,
    replace: bool,
    labor: bool = False,
) -> TypedHops:
    """Samples the neighbourhood of some seeds in a typed graph.

    Args:
        topologies: The edges of each type, in the order of ``data.edge_types``.
        num_nodes: The number of nodes of each type.
        seed_type: The node type of the seeds.
        seeds: Different nodes, int64.
        fanout: How many neighbours of a node are drawn in each hop, by edge type.
        key: Seed, epoch and step, on which the draws depend.
        replace: Whether a neighbour may be drawn more than once.
        labor: Whether targets share their draws; see `draws.choose_shared`.
    """
    none = seeds.new_empty(0)
    # The nodes of each type, hop by hop, and each node's place among them, or -1.
    nodes = {kind: [none] for kind in num_nodes}
    nodes[seed_type] = [seeds]
    place = {k: seeds.new_full((count,), -1) for k, count in num_nodes.items()}
    place[seed_type][seeds] = torch.arange(seeds.size(0), device=seeds.device)
    targets: dict[EdgeType, list[Tensor]] = {kind: [] for kind in topologies}
    slots: dict[EdgeType, list[Tensor]] = {kind: [] for kind in topologies}

    for hop in range(len(next(iter(fanout.values())))):
        found = {kind: [none] for kind in num_nodes}
        for relation, (kind, topology) in enumerate(topologies.items()):
            expanded = nodes[kind[2]][-1]
            keys = target_keys(key, hop, relation, expanded)
            shared = shared_key(key, hop, relation, seeds.device) if labor else None
            row, slot = _sample_rows(
                topology, expanded, keys, fanout[kind][hop], replace, shared
            )
            targets[kind].append(place[kind[2]][expanded[row]])
            slots[kind].append(slot)
            found[kind[0]].append(topology.source[slot].long())
        for name, lists in found.items():
            new = torch.unique(torch.cat(lists), sorted=True)
            new = new[place[name][new] < 0]
            before = sum(part.size(0) for part in nodes[name])
            place[name][new] = torch.arange(new.size(0), device=new.device) + before
            nodes[name].append(new)

    slot_of = {kind: torch.cat(parts) for kind, parts in slots.items()}
    return TypedHops(
        {kind: torch.cat(parts) for kind, parts in nodes.items()},
        {
            kind: place[kind[0]][topologies[kind].source[slot].long()].int()
            for kind, slot in slot_of.items()
        },
        {kind: torch.cat(parts).int() for kind, parts in targets.items()},
        slot_of,
        {kind: [x.size(0) for x in parts] for kind, parts in nodes.items()},
        {kind: [x.size(0) for x in parts] for kind, parts in slots.items()},
    )


def _sample_rows(
    topology: Topology,
    targets: Tensor,
    keys: Tensor,
    count: int,
    replace: bool,
    shared: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """Which target each sampled edge belongs to, by its place, and the edge's slot."""
    begin = topology.pointer[targets].long()
    degree = topology.pointer[targets + 1].long() - begin
    # With replacement even a target with few edges is drawn from ``count`` times.
    draws = (degree > (0 if replace else count)) & (count >= 0)
    some, all_of = draws.nonzero().squeeze(1), (~draws).nonzero().squeeze(1)
    if shared is None:
        chosen = choose(keys[some], degree[some], max(count, 0), replace)
    else:
        rows = begin[some], degree[some]
        chosen = choose_shared(shared, topology.source, *rows, max(count, 0))
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
