"""Checks what a sampler is given, and groups its edges."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from tempergat.base import UserError, suggest_one_of
from tempergat.sampling.engines.hops import EdgeType
from tempergat.sampling.storage.topology import Topology


def check_numbers(
    batch_size: int, rank: int, world_size: int, prefetch: int, seed: int
) -> None:
    """Refuses numbers that a sampler cannot have.

    Raises:
        UserError: One of them is out of its range.
    """
    for name, value, least in (
        ("batch_size", batch_size, 1),
        ("world_size", world_size, 1),
        ("prefetch", prefetch, 0),
    ):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise UserError(f"{name} must be {least} or more, got {value!r}")
    is_whole = isinstance(seed, int) and not isinstance(seed, bool)
    if not is_whole or not -(2**63) <= seed < 2**63:
        raise UserError(f"seed must be a whole number of 64 bits, got {seed!r}")
    if not 0 <= rank < world_size:
        raise UserError(
            f"rank must be from 0 to world_size - 1 = {world_size - 1}, got {rank!r}"
        )


def check_data(data: Any) -> None:
    """Refuses what is not a graph of PyG.

    Raises:
        UserError: It is neither ``Data`` nor ``HeteroData``.
    """
    if not isinstance(data, Data | HeteroData):
        raise UserError(
            "data must be a Data or HeteroData of torch_geometric, got "
            f"{type(data).__name__}"
        )


def checked_device(device: torch.device | str) -> torch.device:
    """The device that batches are made on.

    Raises:
        UserError: There is no such device, or no batches can be made on it.
    """
    try:
        found = torch.device(device)
    except RuntimeError:
        found = torch.device("meta")
    if found.type == "cuda" and not torch.cuda.is_available():
        raise UserError(f"device is '{device}', but torch sees no GPU; use 'cpu'")
    if found.type not in ("cpu", "cuda"):
        raise UserError(f"device is '{device}'; use 'cpu' or 'cuda'")
    return found


def typed_seeds(data: HeteroData, seeds: Any) -> tuple[str, Any]:
    """The node type of the seeds, and the seeds.

    Raises:
        UserError: The type is not given, or does not exist.
    """
    kind, ids = (seeds, None) if isinstance(seeds, str) else (None, None)
    if isinstance(seeds, tuple) and len(seeds) == 2:
        kind, ids = seeds
    if kind is None or not isinstance(kind, str):
        raise UserError(
            "a typed graph needs the node type of the seeds: pass seeds=('"
            f"{data.node_types[0]}', ids), with None in the place of ids for all nodes"
        )
    if kind not in data.node_types:
        raise UserError(
            f"the graph has no node type '{kind}'; "
            f"{suggest_one_of(kind, data.node_types)}"
        )
    return kind, ids


def num_nodes_of(store: Any) -> int:
    """The number of nodes of a graph, or of a node type.

    Raises:
        UserError: It is unknown.
    """
    count: int | None = store.num_nodes
    if count is None:
        raise UserError(
            "the number of nodes is unknown; set data.num_nodes, or give the nodes "
            "features x"
        )
    return count


def topology_of(data: Data, num_nodes: int, given: Any) -> Topology:
    """The edges of a graph, grouped by target.

    Args:
        data: The graph.
        num_nodes: Its number of nodes.
        given: The same edges, if they are grouped already; None otherwise.

    Raises:
        UserError: There are no edges, or they do not fit the nodes.
    """
    if given is None:
        return Topology.of(_edge_index(data), num_nodes)
    if not isinstance(given, Topology):
        raise UserError(
            f"topology must be a Topology for a graph without types, got "
            f"{type(given).__name__}"
        )
    _check_sizes(given, (num_nodes, num_nodes), "the topology")
    return given


def topologies_of(
    data: HeteroData, num_nodes: dict[str, int], given: Any
) -> dict[EdgeType, Topology]:
    """The edges of each type, in the order of ``data.edge_types``.

    Args:
        data: The graph; if edges are given, it need not have any.
        num_nodes: Its number of nodes of each type.
        given: The edges by type, if they are grouped already; None otherwise.

    Raises:
        UserError: There are no edges, or they do not fit the data.
    """
    if given is not None and not isinstance(given, dict):
        raise UserError(
            "topology must be a dict with a Topology for each edge type of HeteroData"
        )
    kinds: list[EdgeType] = list(data.edge_types) or list(given or {})
    if not kinds:
        raise UserError(
            "the graph has no edges; a sampler needs at least one edge type"
        )
    if given is not None and set(given) != set(kinds):
        raise UserError(
            f"topology has the edge types {list(given)}, but the data has {kinds}"
        )
    found = {}
    for kind in kinds:
        for node_type in (kind[0], kind[2]):
            if node_type not in num_nodes:
                raise UserError(
                    f"the edge type {kind!r} needs the node type '{node_type}', which "
                    "the data does not have; set its num_nodes"
                )
        sizes = num_nodes[kind[0]], num_nodes[kind[2]]
        if given is None:
            found[kind] = Topology.of(_edge_index(data[kind]), sizes)
        else:
            _check_sizes(given[kind], sizes, f"the topology of {kind!r}")
            found[kind] = given[kind]
    return found


def _check_sizes(topology: Topology, sizes: tuple[int, int], name: str) -> None:
    if (topology.num_src, topology.num_dst) != sizes:
        raise UserError(
            f"{name} has {topology.num_src} source and {topology.num_dst} target "
            f"nodes, but the data has {sizes[0]} and {sizes[1]}; use those of one graph"
        )


def _edge_index(store: Any) -> Tensor:
    if "edge_index" not in store:
        raise UserError(
            "the data has no edge_index; convert an adj_t by "
            "torch_geometric.utils.to_edge_index"
        )
    edges: Tensor = store.edge_index
    return edges
