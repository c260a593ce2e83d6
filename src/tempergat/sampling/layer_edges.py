"""The edges of a batch in one graph, sorted by target, from any kind of batch."""

from __future__ import annotations

from itertools import accumulate
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import HeteroData

from tempergat.base import UserError
from tempergat.ops import Graph
from tempergat.sampling.engines.hops import TypedHops


class LayerEdges(NamedTuple):
    """The parts of `LayerGraphs`; see there."""

    source: Tensor
    target: Tensor
    pointer: Tensor
    nodes_per_hop: list[int]
    edges_per_hop: list[int]
    rows_of_type: dict[str, Tensor] | None = None
    edge_order: Tensor | None = None


def edges_of_typed_hops(hops: TypedHops) -> LayerEdges:
    """The nodes of all types in one graph: hop by hop, in each the types in turn."""
    nodes, rows = merged_rows(hops.nodes_per_hop, next(iter(hops.n_id.values())).device)
    sources = [rows[kind[0]][x.long()] for kind, x in hops.source.items()]
    targets = [rows[kind[2]][x.long()] for kind, x in hops.target.items()]
    edges = [sum(sizes) for sizes in zip(*hops.edges_per_hop.values(), strict=True)]
    parts = _sorted(torch.stack([torch.cat(sources), torch.cat(targets)]), nodes)
    # The nodes of the last hop are no targets.
    pointer = parts.pointer[: sum(nodes[:-1]) + 1]
    return parts._replace(pointer=pointer, edges_per_hop=edges, rows_of_type=rows)


def edges_of_batch(batch: Any) -> LayerEdges:
    """The edges of a batch with the fields of PyG's loaders, in any order.

    Where these fields are missing, or edges lead past them (as in an induced
    subgraph), every layer gets the whole batch.

    Raises:
        UserError: The fields contradict each other.
    """
    if isinstance(batch, HeteroData):
        nodes, rows = _rows_of_batch(batch)
        ends = [
            torch.stack([rows[kind[0]][edges[0]], rows[kind[2]][edges[1]]])
            for kind, edges in batch.edge_index_dict.items()
        ]
        parts = _sorted(torch.cat(ends, dim=1), nodes)._replace(rows_of_type=rows)
    else:
        nodes = _per_hop(batch, "the batch") or [_num_nodes(batch), 0]
        parts = _sorted(batch.edge_index, nodes)
        expected = batch.get("num_sampled_edges")
        if "num_sampled_nodes" in batch and expected is not None:
            _check_count("num_sampled_edges", expected, batch.num_edges, "the batch")
    return _trimmed(parts)


def merged_rows(
    nodes_per_hop: dict[str, list[int]], device: torch.device
) -> tuple[list[int], dict[str, Tensor]]:
    """The number of nodes in each hop, and the rows of each type's nodes, int64."""
    per_hop = list(zip(*nodes_per_hop.values(), strict=True))
    rows: dict[str, list[Tensor]] = {kind: [] for kind in nodes_per_hop}
    count = 0
    for sizes in per_hop:
        for kind, size in zip(nodes_per_hop, sizes, strict=True):
            rows[kind].append(torch.arange(count, count + size, device=device))
            count += size
    found = {kind: torch.cat(parts) for kind, parts in rows.items()}
    return [sum(sizes) for sizes in per_hop], found


def _sorted(edge_index: Tensor, nodes_per_hop: list[int]) -> LayerEdges:
    """Sorts edges by target; those of a target keep their order."""
    count = sum(nodes_per_hop)
    rows = Graph(edge_index, count).by_target
    degree = rows.pointer.diff().long()
    return LayerEdges(
        rows.other,
        torch.arange(count, device=edge_index.device).repeat_interleave(degree).int(),
        rows.pointer,
        nodes_per_hop,
        [],
        edge_order=rows.position.long(),
    )


def _trimmed(parts: LayerEdges) -> LayerEdges:
    """Counts the edges of each hop, or gives all layers the whole batch."""
    nodes = parts.nodes_per_hop
    ends = parts.pointer[torch.tensor(list(accumulate(nodes[:-1])))].tolist()
    reached = list(accumulate(nodes))[1:]
    for end, limit in zip(ends, reached, strict=True):
        if end and int(parts.source[:end].max()) >= limit:
            break
    else:
        if ends[-1] == parts.source.size(0):
            edges = [b - a for a, b in zip([0, *ends[:-1]], ends, strict=True)]
            return parts._replace(edges_per_hop=edges)
    return parts._replace(
        nodes_per_hop=[sum(nodes), 0], edges_per_hop=[parts.source.size(0)]
    )


def _rows_of_batch(batch: HeteroData) -> tuple[list[int], dict[str, Tensor]]:
    counts = {kind: _num_nodes(batch[kind]) for kind in batch.node_types}
    found = {kind: _per_hop(batch[kind], f"'{kind}'") for kind in batch.node_types}
    known = {kind: hops for kind, hops in found.items() if hops is not None}
    if len(known) < len(found) or len({len(hops) for hops in known.values()}) > 1:
        # The type of the seeds comes first, so that they are the first rows.
        kinds = sorted(counts, key=lambda kind: "batch_size" not in batch[kind])
        known = {kind: [counts[kind], 0] for kind in kinds}
    device = next(iter(batch.edge_index_dict.values())).device
    return merged_rows(known, device)


def _per_hop(store: Any, name: str) -> list[int] | None:
    """How many nodes of a batch each hop has; None where it does not say."""
    counts = store.get("num_sampled_nodes")
    if counts is None:
        return None
    _check_count("num_sampled_nodes", counts, _num_nodes(store), name)
    hops = [int(count) for count in counts]
    return hops if len(hops) > 1 else [*hops, 0]


def _num_nodes(store: Any) -> int:
    count = store.num_nodes
    if count is None:
        raise UserError(
            "the number of nodes of a batch is unknown; give it n_id, x or num_nodes"
        )
    return int(count)


def _check_count(field: str, counts: Any, expected: int, name: str) -> None:
    total = int(sum(counts))
    if total != expected:
        what = "nodes" if field == "num_sampled_nodes" else "edges"
        raise UserError(
            f"{field} of {name} adds up to {total}, but there are {expected} {what}; "
            f"correct it, or leave {field} out"
        )
