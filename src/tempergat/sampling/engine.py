"""Chooses the engine that samples a batch; all of them give the same one."""

from __future__ import annotations

from torch import Tensor

from tempergat.sampling import reference
from tempergat.sampling.draws import Key
from tempergat.sampling.hops import EdgeType, SampledHops, TypedHops
from tempergat.sampling.topology import Topology


def sample(
    topology: Topology, seeds: Tensor, fanout: list[int], key: Key, replace: bool
) -> SampledHops:
    """Samples the neighbourhood of some seeds; see `reference.sample`."""
    return reference.sample(topology, seeds, fanout, key, replace)


def sample_typed(
    topologies: dict[EdgeType, Topology],
    num_nodes: dict[str, int],
    seed_type: str,
    seeds: Tensor,
    fanout: dict[EdgeType, list[int]],
    key: Key,
    replace: bool,
) -> TypedHops:
    """The same in a typed graph; see `reference.sample_typed`."""
    return reference.sample_typed(
        topologies, num_nodes, seed_type, seeds, fanout, key, replace
    )
