"""Chooses the engine that samples a batch; all of them give the same one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar
from weakref import WeakKeyDictionary

from torch import Tensor

from tempergat.ops import CpuSampler, Relation, can_sample_on_cpu, gpu_sampling
from tempergat.sampling.engines import gpu, reference
from tempergat.sampling.engines.draws import Key
from tempergat.sampling.engines.hops import EdgeType, SampledHops, TypedHops
from tempergat.sampling.storage.topology import Topology

T = TypeVar("T")
# Memory of the C++ engine that no call is using, for as long as its graph lives. A
# thread takes some out and puts it back.
_idle: WeakKeyDictionary[Topology, list[CpuSampler]] = WeakKeyDictionary()


def sample(
    topology: Topology,
    seeds: Tensor,
    fanout: list[int],
    key: Key,
    replace: bool,
    labor: bool = False,
) -> SampledHops:
    """Samples the neighbourhood of some seeds; see `reference.sample`."""
    kernels = gpu_sampling(topology.device)
    if kernels is not None and not labor:
        return gpu.sample(kernels, topology, seeds, fanout, key, replace)
    if not _by_cpp(topology, seeds):
        return reference.sample(topology, seeds, fanout, key, replace, labor)
    relation = Relation(topology.pointer, topology.source, 0, 0)
    drawn = _with_memory(
        topology,
        [topology.num_src],
        lambda cpp: cpp.sample(
            [relation], 0, seeds, [fanout], key.of_step(), replace, labor
        ),
    )
    (n_id,), (source,), (target,), (slot,), pointer, (nodes,), (edges,) = drawn
    assert pointer is not None
    return SampledHops(n_id, source, target, pointer, slot, nodes, edges)


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
    """The same in a typed graph; see `reference.sample_typed`."""
    kernels = gpu_sampling(next(iter(topologies.values())).device)
    if kernels is not None and not labor:
        return gpu.sample_typed(
            kernels, topologies, num_nodes, seed_type, seeds, fanout, key, replace
        )
    if not all(_by_cpp(topology, seeds) for topology in topologies.values()):
        return reference.sample_typed(
            topologies, num_nodes, seed_type, seeds, fanout, key, replace, labor
        )
    kinds, types = list(topologies), list(num_nodes)
    relations = [
        Relation(t.pointer, t.source, types.index(kind[0]), types.index(kind[2]))
        for kind, t in topologies.items()
    ]
    fanouts = [fanout[kind] for kind in kinds]
    drawn = _with_memory(
        topologies[kinds[0]],
        list(num_nodes.values()),
        lambda cpp: cpp.sample(
            relations,
            types.index(seed_type),
            seeds,
            fanouts,
            key.of_step(),
            replace,
            labor,
        ),
    )
    return TypedHops(
        dict(zip(types, drawn.n_id, strict=True)),
        dict(zip(kinds, drawn.source, strict=True)),
        dict(zip(kinds, drawn.target, strict=True)),
        dict(zip(kinds, drawn.slot, strict=True)),
        dict(zip(types, drawn.nodes_per_hop, strict=True)),
        dict(zip(kinds, drawn.edges_per_hop, strict=True)),
    )


def _by_cpp(topology: Topology, seeds: Tensor) -> bool:
    on_cpu = topology.device.type == seeds.device.type == "cpu"
    return on_cpu and can_sample_on_cpu()


def _with_memory(
    topology: Topology, num_nodes: Sequence[int], call: Callable[[CpuSampler], T]
) -> T:
    """Calls a function with memory that no other thread is using."""
    idle = _idle.setdefault(topology, [])
    try:
        memory = idle.pop()
    except IndexError:
        memory = CpuSampler(num_nodes)
    if memory.num_nodes != list(num_nodes):
        memory = CpuSampler(num_nodes)
    drawn = call(memory)
    # After a failure the memory is not used again.
    idle.append(memory)
    return drawn
