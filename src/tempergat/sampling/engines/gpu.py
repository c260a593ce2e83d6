"""The engine for graphs on a CUDA device, and the layers' graphs of its batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from tempergat.ops import Graph
from tempergat.sampling.engines.draws import Key
from tempergat.sampling.engines.hops import EdgeType, SampledHops, TypedHops
from tempergat.sampling.storage.topology import Topology

# So many batches of a size are sampled before a CUDA graph is recorded for it.
_PLAIN_CALLS = 3
_calls: WeakKeyDictionary[Topology, dict[Any, _Calls]] = WeakKeyDictionary()


def sample(
    kernels: Any,
    topology: Topology,
    seeds: Tensor,
    fanout: list[int],
    key: Key,
    replace: bool,
) -> SampledHops:
    """As `reference.sample`.

    Args:
        kernels: The module of the GPU kernels.
        topology: As in `reference.sample`, like the rest.
        seeds: See there.
        fanout: See there.
        key: See there.
        replace: See there.
    """
    relation = kernels.Relation(topology.pointer, topology.source, 0, 0)
    seeds = seeds.to(topology.device)
    arguments = (relation, topology.num_src, fanout, replace)
    recorded = _recorded(kernels, topology, seeds.size(0), *arguments)
    if recorded is not None:
        sampled, (nodes,), (edges,) = recorded.sample(seeds, key.of_step())
    else:
        number = _key_tensor(key, topology.device)
        lists = ([relation], [topology.num_src], 0, seeds, [fanout])
        sampled = kernels.sample(*lists, number, replace)
        (nodes,), (edges,) = sampled.read(len(fanout))
    return SampledHops(
        sampled.n_id[0][: nodes[-1]],
        sampled.source[0][: edges[-1]],
        sampled.target[0][: edges[-1]],
        sampled.pointer[0][: nodes[-2] + 1],
        sampled.slot[0][: edges[-1]],
        _differences(nodes),
        _differences(edges),
    )


class _Calls:
    """How often batches were sampled, by their number of seeds; then a recording."""

    def __init__(self) -> None:
        self.count: dict[int, int] = {}
        self.recorded: Any = None


def _recorded(
    kernels: Any,
    topology: Topology,
    num_seeds: int,
    relation: Any,
    num_nodes: int,
    fanout: list[int],
    replace: bool,
) -> Any | None:
    """What samples such batches as a CUDA graph, once there were a few of them."""
    if topology.device.type != "cuda":
        return None
    of_topology = _calls.setdefault(topology, {})
    calls = of_topology.setdefault((tuple(fanout), replace), _Calls())
    if calls.recorded is not None and num_seeds <= calls.recorded.batch_size:
        return calls.recorded
    calls.count[num_seeds] = calls.count.get(num_seeds, 0) + 1
    if calls.count[num_seeds] > _PLAIN_CALLS:
        facts = (relation, num_nodes, num_seeds, fanout, replace)
        if kernels.can_record(*facts):
            calls.recorded = kernels.Recorded(*facts)
            return calls.recorded
    return None


def sample_typed(
    kernels: Any,
    topologies: Mapping[EdgeType, Topology],
    num_nodes: Mapping[str, int],
    seed_type: str,
    seeds: Tensor,
    fanout: Mapping[EdgeType, list[int]],
    key: Key,
    replace: bool,
) -> TypedHops:
    """As `reference.sample_typed`; see `sample`."""
    names = list(num_nodes)
    relations = [
        kernels.Relation(
            topology.pointer,
            topology.source,
            names.index(kind[0]),
            names.index(kind[2]),
        )
        for kind, topology in topologies.items()
    ]
    device = next(iter(topologies.values())).device
    hops = [fanout[kind] for kind in topologies]
    sampled = kernels.sample(
        relations,
        list(num_nodes.values()),
        names.index(seed_type),
        seeds.to(device),
        hops,
        _key_tensor(key, device),
        replace,
    )
    nodes, edges = sampled.read(len(hops[0]))
    counts = dict(zip(names, nodes, strict=True))
    edge_counts = dict(zip(topologies, edges, strict=True))

    def by_relation(tensors: list[Tensor]) -> dict[EdgeType, Tensor]:
        pairs = zip(topologies, tensors, edges, strict=True)
        return {kind: tensor[: count[-1]] for kind, tensor, count in pairs}

    return TypedHops(
        {n: x[: counts[n][-1]] for n, x in zip(names, sampled.n_id, strict=True)},
        by_relation(sampled.source),
        by_relation(sampled.target),
        by_relation(sampled.slot),
        {name: _differences(count) for name, count in counts.items()},
        {kind: _differences(count) for kind, count in edge_counts.items()},
    )


def layer_graphs(
    kernels: Any,
    ends: tuple[Tensor, Tensor, Tensor],
    nodes_per_hop: Sequence[int],
    edges_per_hop: Sequence[int],
    depths: Sequence[int],
    *,
    self_loops: bool,
    training: bool,
) -> list[Graph]:
    """The graphs of a batch for layers that have so many layers after them.

    Args:
        kernels: The module of the GPU kernels.
        ends: Source and target of each edge, and the pointer by target.
        nodes_per_hop: Number of seeds, then of new nodes in each hop.
        edges_per_hop: Number of edges in each hop.
        depths: The layers; at most the number of hops each.
        self_loops: Whether every target gets exactly one self-loop.
        training: Whether a backward pass will need the edges by source.
    """
    source, target, pointer = ends
    nodes = list(accumulate(nodes_per_hop, initial=0))
    edges = list(accumulate(edges_per_hop, initial=0))
    # Both begin at a multiple of 16 bytes, on which compiled kernels rely.
    room = (len(nodes) + 3) // 4 * 4
    counts = torch.tensor(nodes + [0] * (room - len(nodes)) + edges, dtype=torch.int32)
    counts = counts.to(source.device, non_blocking=True)
    loops = kernels.loops_of(source, target) if self_loops else None
    batch = kernels.Batch(
        pointer,
        source,
        target,
        counts[:room],
        counts[room:],
        len(edges_per_hop),
        loops,
    )
    sizes = [
        kernels.Sizes(
            nodes[min(depth + 2, len(nodes) - 1)],
            nodes[depth + 1],
            edges[min(depth + 1, len(edges) - 1)],
        )
        for depth in depths
    ]
    made: list[Graph] = kernels.layer_graphs(
        batch, depths, sizes, self_loops=self_loops, training=training
    )
    return made


def _key_tensor(key: Key, device: torch.device) -> Tensor:
    return torch.full((1,), key.of_step(), dtype=torch.int64, device=device)


def _differences(counts: Sequence[int]) -> list[int]:
    return [after - before for before, after in pairwise(counts)]
