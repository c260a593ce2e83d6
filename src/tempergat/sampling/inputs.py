"""Checks what a sampler is given, and groups its edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.typing import EdgeType

from tempergat.base import UserError, suggest_one_of
from tempergat.sampling.topology import Topology


def check_data_and_numbers(
    data: Any, batch_size: int, rank: int, world_size: int, prefetch: int, seed: int
) -> None:
    """Refuses what is not a graph of PyG, and numbers that a sampler cannot have.

    Raises:
        UserError: The data is neither ``Data`` nor ``HeteroData``, or a number is out
            of its range.
    """
    if not isinstance(data, Data | HeteroData):
        raise UserError(
            "data must be a Data or HeteroData of torch_geometric, got "
            f"{type(data).__name__}"
        )
    check_number("batch_size", batch_size, 1)
    check_number("world_size", world_size, 1)
    check_number("prefetch", prefetch, 0)
    check_seed(seed)
    if not 0 <= rank < world_size:
        raise UserError(
            f"rank must be from 0 to world_size - 1 = {world_size - 1}, got {rank!r}"
        )


def check_number(name: str, value: Any, least: int) -> None:
    """Raises UserError unless the value is a whole number and large enough."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise UserError(f"{name} must be {least} or more, got {value!r}")


def check_seed(seed: Any) -> None:
    """Raises UserError unless it is a whole number of 64 bits."""
    is_whole = isinstance(seed, int) and not isinstance(seed, bool)
    if not is_whole or not -(2**63) <= seed < 2**63:
        raise UserError(f"seed must be a whole number of 64 bits, got {seed!r}")


def checked_device(device: torch.device | str) -> torch.device:
    """The device that batches are made on.

    Raises:
        UserError: There is no such device, or no batches can be made on it.
    """
    try:
        place = torch.device(device)
    except RuntimeError:
        place = torch.device("meta")
    if place.type == "cuda" and not torch.cuda.is_available():
        raise UserError(f"device is '{device}', but torch sees no GPU; use 'cpu'")
    if place.type not in ("cpu", "cuda"):
        raise UserError(f"device is '{device}'; use 'cpu' or 'cuda'")
    return place


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


def checked_seeds(
    seeds: Tensor | Sequence[int] | None, num_nodes: int, of_type: str = ""
) -> Tensor:
    """Seeds as node numbers, int64.

    Args:
        seeds: Node numbers, a mask over the nodes, or None for all nodes.
        num_nodes: Number of nodes.
        of_type: The node type, for messages.

    Raises:
        UserError: There are none, one does not exist, or one is there twice.
    """
    kind = f" of type '{of_type}'" if of_type else ""
    if seeds is None:
        ids = torch.arange(num_nodes)
    else:
        try:
            ids = torch.as_tensor(seeds).cpu()
        except (TypeError, ValueError, RuntimeError):
            raise UserError(
                f"seeds must be a list of node numbers or a mask, got {seeds!r}"
            ) from None
        if ids.dtype == torch.bool:
            if ids.shape != (num_nodes,):
                raise UserError(
                    f"the mask of seeds has shape {list(ids.shape)}, but there are "
                    f"{num_nodes} nodes{kind}; give one entry per node"
                )
            ids = ids.nonzero().squeeze(1)
        elif ids.numel() and (ids.dim() != 1 or ids.is_floating_point()):
            raise UserError(
                f"seeds must be a list of node numbers or a mask, got {ids.dtype} of "
                f"shape {list(ids.shape)}"
            )
        ids = ids.long()
    if ids.numel() == 0:
        raise UserError(f"there are no seeds{kind}; give at least one node")
    low, high = int(ids.min()), int(ids.max())
    if low < 0 or high >= num_nodes:
        raise UserError(
            f"seed {low if low < 0 else high} does not exist: there are {num_nodes} "
            f"nodes{kind} (0..{num_nodes - 1})"
        )
    ascending = ids.sort().values
    twice = (ascending[1:] == ascending[:-1]).nonzero()
    if twice.numel():
        raise UserError(
            f"seed {int(ascending[int(twice[0])])} is given more than once; pass "
            "seeds.unique()"
        )
    return ids


def checked_fanout(fanout: Any) -> list[int]:
    """The fanout of each hop.

    Raises:
        UserError: It is not a list of whole numbers of 64 bits that are -1 or more.
    """
    if isinstance(fanout, Mapping):
        raise UserError(
            "a fanout by edge type needs HeteroData; for a graph without types give a "
            "list, for example [15, 10]"
        )
    if isinstance(fanout, str) or not isinstance(fanout, Sequence) or not fanout:
        raise UserError(
            f"fanout must be a list with one number for each hop, for example "
            f"[15, 10], got {fanout!r}"
        )
    for count in fanout:
        is_whole = isinstance(count, int) and not isinstance(count, bool)
        if not is_whole or not -1 <= count < 2**63:
            raise UserError(
                f"fanout {list(fanout)} has the entry {count!r}; use a whole number of "
                "neighbours, or -1 for all of them"
            )
    return list(fanout)


def checked_typed_fanout(
    fanout: Any, edge_types: Sequence[EdgeType]
) -> dict[EdgeType, list[int]]:
    """The fanout of each hop, by edge type.

    Args:
        fanout: One list for all edge types, or a list for each.
        edge_types: The edge types of the graph.

    Raises:
        UserError: An edge type is unknown or missing, or a list is wrong.
    """
    if not isinstance(fanout, Mapping):
        return {kind: checked_fanout(fanout) for kind in edge_types}
    for kind in fanout:
        if kind not in edge_types:
            near = suggest_one_of(str(kind), [str(known) for known in edge_types])
            raise UserError(
                f"the graph has no edge type {kind!r} of the fanout; {near}"
            )
    for kind in edge_types:
        if kind not in fanout:
            hops = len(next(iter(fanout.values()), [0]))
            raise UserError(
                f"the fanout has no entry for the edge type {kind!r}; add one, "
                f"{[0] * hops} to draw none of its edges"
            )
    lists = {kind: checked_fanout(fanout[kind]) for kind in edge_types}
    lengths = {len(counts) for counts in lists.values()}
    if len(lengths) > 1:
        raise UserError(
            f"the fanouts have {' and '.join(map(str, sorted(lengths)))} hops; give "
            "every edge type as many (0 draws none)"
        )
    return lists


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
    topologies = {}
    for kind in kinds:
        for node_type in (kind[0], kind[2]):
            if node_type not in num_nodes:
                raise UserError(
                    f"the edge type {kind!r} needs the node type '{node_type}', which "
                    "the data does not have; set its num_nodes"
                )
        sizes = num_nodes[kind[0]], num_nodes[kind[2]]
        if given is None:
            topologies[kind] = Topology.of(_edge_index(data[kind]), sizes)
        else:
            _check_sizes(given[kind], sizes, f"the topology of {kind!r}")
            topologies[kind] = given[kind]
    return topologies


def check_rows(store: Any, counts: dict[str, int], of_type: str = "") -> None:
    """Refuses attributes whose names promise a row per node or edge, and that have not.

    PyG takes such an attribute for one of the whole graph: every batch would have all
    of it, and its first rows would not be those of the seeds.

    Args:
        store: The attributes of a graph, of a node type or of an edge type.
        counts: Its number of "nodes" and of "edges".
        of_type: The type, for messages.

    Raises:
        UserError: An attribute has another number of rows.
    """
    for key, value in store.items():
        kinds = _PROMISED.get("_mask" if key.endswith("_mask") else key, "")
        wanted = {kind: count for kind, count in counts.items() if kind in kinds}
        is_list = isinstance(value, list | tuple)
        shape = (len(value),) if is_list else getattr(value, "shape", ())
        if not (wanted and shape):
            continue
        rows = shape[store._parent().__cat_dim__(key, value, store)]
        if rows not in wanted.values():
            sizes = " and ".join(f"{count} {kind}" for kind, count in wanted.items())
            raise UserError(
                f"{key}{of_type} has {rows} rows, but there are {sizes}; give one row "
                "for each, or another name to what belongs to the whole graph"
            )


# Labels and masks may be those of nodes or of edges.
_PROMISED = {"x": "nodes", "pos": "nodes", "y": "nodes edges", "_mask": "nodes edges"}
_PROMISED |= dict.fromkeys(("edge_attr", "edge_weight", "edge_type"), "edges")


def check_epoch(epoch: Any) -> None:
    """Raises UserError unless it is the number of an epoch."""
    if isinstance(epoch, bool) or not isinstance(epoch, int) or epoch < 0:
        raise UserError(f"epoch must be a whole number from 0, got {epoch!r}")


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
