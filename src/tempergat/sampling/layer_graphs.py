"""The graphs of a batch that the layers of a model use, one for each layer."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import HeteroData
from torch_geometric.typing import EdgeType

from tempergat.base import UserError
from tempergat.ops import Graph, gpu_sampling, make_layer_graph
from tempergat.sampling.reference import SampledHops


class LayerGraphs:
    """A sampled batch as one graph per layer, each without work that is not needed.

    A layer with d layers after it computes the nodes at most d hops from a seed, from
    those at most d + 1 hops away. Both are the first rows of the batch. The seeds'
    outputs are those of running every layer on the whole batch, because a node's
    edges are all drawn when it is expanded.

    With more layers than hops, the first layers use the whole batch: the nodes of the
    last hop have no sampled neighbours, and a layer gives them what it gives to any
    node without neighbours. With fewer layers than hops, only the first hops are
    used, and the first layer takes the first ``num_src`` rows of the features. Graph
    convolution then differs from running on the whole batch, because it divides by the
    degrees of the edges that are used.

    Attributes:
        source: The source of each edge, int32.
        target: The target of each edge, int32, ascending.
        pointer: Where the edges of each target begin and end, int32. Nodes after the
            last target have no edges.
        nodes_per_hop: Number of seeds, then of new nodes in each hop.
        edges_per_hop: Number of edges in each hop.
        training: Whether a backward pass will need the edges by source.
        rows_of_type: In a typed batch, the rows that the nodes of each type have in
            these graphs, int64; None otherwise.
        edge_order: In a batch whose edges were sorted here, the place that each edge
            had before, int64; in a typed batch, before that the edges of all types are
            put together in turn. None where the edges are those of the batch.
    """

    def __init__(
        self,
        source: Tensor,
        target: Tensor,
        pointer: Tensor,
        nodes_per_hop: Sequence[int],
        edges_per_hop: Sequence[int],
        rows_of_type: dict[str, Tensor] | None = None,
        edge_order: Tensor | None = None,
        *,
        training: bool = True,
    ) -> None:
        self.source, self.target, self.pointer = source, target, pointer
        self.nodes_per_hop = list(nodes_per_hop)
        self.edges_per_hop = list(edges_per_hop)
        self.training = training
        self.rows_of_type = rows_of_type
        self.edge_order = edge_order
        self._made: dict[tuple[int, bool], Graph] = {}
        self._wanted: set[tuple[int, bool]] | None = None

    @classmethod
    def of_hops(
        cls,
        hops: SampledHops,
        node_types: Sequence[str] | None = None,
        edge_types: Sequence[EdgeType] = (),
        *,
        training: bool = True,
    ) -> LayerGraphs:
        """The graphs of a sampled batch.

        With types, the nodes of all types are in one graph. Its rows are the seeds,
        then for each hop the new nodes of each type in turn.

        Args:
            hops: What was sampled.
            node_types: The names of the node types; None for a graph without types.
            edge_types: The edge types, in the order of the relations.
            training: Whether a backward pass will need the edges by source.
        """
        if node_types is None:
            assert hops.pointer is not None
            return cls(
                hops.source[0],
                hops.target[0],
                hops.pointer,
                hops.nodes_per_hop[0],
                hops.edges_per_hop[0],
                training=training,
            )
        per_hop = dict(zip(node_types, hops.nodes_per_hop, strict=True))
        nodes, rows = _merged_rows(per_hop, hops.n_id[0].device)
        pairs = zip(edge_types, hops.source, hops.target, strict=True)
        edges = [
            torch.stack([rows[kind[0]][source.long()], rows[kind[2]][target.long()]])
            for kind, source, target in pairs
        ]
        source, target, pointer, order = _sort_by_target(torch.cat(edges, 1), nodes)
        # The nodes of the last hop are no targets.
        pointer = pointer[: sum(nodes[:-1]) + 1]
        counts = [sum(sizes) for sizes in zip(*hops.edges_per_hop, strict=True)]
        ends = source, target, pointer
        return cls(*ends, nodes, counts, rows, order, training=training)

    @classmethod
    def of_batch(cls, batch: Any, *, training: bool = True) -> LayerGraphs:
        """The graphs of a batch that was made elsewhere, like by PyG's loaders.

        Its edges may have any order; `in_edge_order` puts edge features into that of
        these graphs. If the batch does not say how many nodes each hop has, or is an
        induced subgraph, every layer uses the whole batch, and the seeds' outputs are
        the first rows of all.

        Args:
            batch: A ``Data`` or ``HeteroData`` with ``edge_index``, the seeds first
                among the nodes, and ``num_sampled_nodes`` if known.
            training: Whether a backward pass will need the edges by source.

        Raises:
            UserError: The fields contradict each other.
        """
        made = batch.get("graph") if hasattr(batch, "get") else None
        if isinstance(made, cls):
            return made
        rows = None
        if isinstance(batch, HeteroData):
            nodes, rows = _rows_of_batch(batch)
            ends = [
                torch.stack([rows[kind[0]][edges[0]], rows[kind[2]][edges[1]]])
                for kind, edges in batch.edge_index_dict.items()
            ]
            edge_index = torch.cat(ends, dim=1)
        else:
            nodes = _per_hop(batch, "the batch") or [_num_nodes(batch), 0]
            edge_index = batch.edge_index
            counts = batch.get("num_sampled_edges")
            if "num_sampled_nodes" in batch and counts is not None:
                _check_count("num_sampled_edges", counts, batch.num_edges, "the batch")
        source, target, pointer, order = _sort_by_target(edge_index, nodes)
        edges_per_hop = _count_edges(source, pointer, nodes)
        if edges_per_hop is None:
            nodes, edges_per_hop = [sum(nodes), 0], [source.size(0)]
        parts = (source, target, pointer, nodes, edges_per_hop, rows, order)
        return cls(*parts, training=training)

    @property
    def num_nodes(self) -> int:
        """Number of nodes in the batch."""
        return sum(self.nodes_per_hop)

    def in_edge_order(self, values: Tensor) -> Tensor:
        """Edge features of the batch in the order of the edges here."""
        if self.edge_order is None:
            return values
        return values.index_select(0, self.edge_order.to(values.device))

    def for_layers(self, num_layers: int, self_loops: bool) -> tuple[Graph, ...]:
        """The graph of each layer, the first layer's first.

        Args:
            num_layers: Number of layers of the model.
            self_loops: Whether every target gets exactly one self-loop, as layers with
                ``add_self_loops=True`` want it.
        """
        if self._wanted is not None:
            self._wanted.add((num_layers, self_loops))
        # More layers than hops change nothing any more.
        most = len(self.edges_per_hop)
        depths = [min(depth, most) for depth in range(num_layers - 1, -1, -1)]
        keys = [(depth, self_loops) for depth in depths]
        missing = [key for key in dict.fromkeys(keys) if key not in self._made]
        if missing:
            graphs = self._make([depth for depth, _ in missing], self_loops)
            self._made |= zip(missing, graphs, strict=True)
        return tuple(self._made[key] for key in keys)

    def prepare(self, wanted: set[tuple[int, bool]]) -> None:
        """Makes graphs ahead.

        Args:
            wanted: What `for_layers` was called with before. Later calls are added, for
                the batches that come after this one.
        """
        for num_layers, self_loops in sorted(wanted):
            self.for_layers(num_layers, self_loops)
        self._wanted = wanted

    def _make(self, depths: Sequence[int], self_loops: bool) -> list[Graph]:
        """The graphs of layers with so many layers after them."""
        kernels = gpu_sampling(self.source.device)
        if kernels is None:
            return [self._make_one(depth, self_loops) for depth in depths]
        graphs: list[Graph] = kernels.layer_graphs(
            (self.source, self.target, self.pointer),
            self.nodes_per_hop,
            self.edges_per_hop,
            depths,
            self_loops=self_loops,
            training=self.training,
        )
        return graphs

    def _make_one(self, depth: int, self_loops: bool) -> Graph:
        num_src = sum(self.nodes_per_hop[: depth + 2])
        num_dst = sum(self.nodes_per_hop[: depth + 1])
        num_edges = sum(self.edges_per_hop[: depth + 1])
        source, target = self.source[:num_edges], self.target[:num_edges]
        pointer, sizes = self.pointer[: num_dst + 1], (num_src, num_dst)
        if pointer.size(0) <= num_dst:
            missing = num_dst + 1 - pointer.size(0)
            pointer = torch.cat([pointer, pointer[-1:].expand(missing)])
        if source.is_cpu:
            made = make_layer_graph(
                source, target, pointer, sizes, self_loops, self.training
            )
            if made is not None:
                return made
        graph = Graph(
            torch.stack([source, target]).long(), sizes, self_loops=self_loops
        )
        if self.training:
            # Sorted here, so that no layer does it.
            _ = graph.by_source
        return graph

    def to(self, device: torch.device | str, non_blocking: bool = False) -> LayerGraphs:
        """The same graphs on another device."""

        def move(x: Tensor) -> Tensor:
            return x.to(device, non_blocking=non_blocking)

        rows = self.rows_of_type
        moved = LayerGraphs(
            move(self.source),
            move(self.target),
            move(self.pointer),
            self.nodes_per_hop,
            self.edges_per_hop,
            rows and {kind: move(x) for kind, x in rows.items()},
            None if self.edge_order is None else move(self.edge_order),
            training=self.training,
        )
        moved._made = {key: graph.to(device) for key, graph in self._made.items()}
        return moved

    def __repr__(self) -> str:
        return (
            f"LayerGraphs(nodes_per_hop={self.nodes_per_hop}, "
            f"edges_per_hop={self.edges_per_hop})"
        )


def _sort_by_target(edge_index: Tensor, nodes_per_hop: list[int]) -> list[Tensor]:
    """Source, target, pointer and former place of edges; those of a target in turn."""
    count = sum(nodes_per_hop)
    rows = Graph(edge_index, count).by_target
    targets = torch.arange(count, device=edge_index.device)
    target = targets.repeat_interleave(rows.pointer.diff().long()).int()
    return [rows.other, target, rows.pointer, rows.position.long()]


def _merged_rows(
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
    merged = {kind: torch.cat(parts) for kind, parts in rows.items()}
    return [sum(sizes) for sizes in per_hop], merged


def _count_edges(
    source: Tensor, pointer: Tensor, nodes_per_hop: list[int]
) -> list[int] | None:
    """The number of edges of each hop; None where edges lead past the hops."""
    before = list(accumulate(nodes_per_hop))
    ends = pointer[torch.tensor(before[:-1])].tolist()
    for end, limit in zip(ends, before[1:], strict=True):
        if end and int(source[:end].max()) >= limit:
            return None
    if ends[-1] != source.size(0):
        return None
    return [b - a for a, b in zip([0, *ends[:-1]], ends, strict=True)]


def _rows_of_batch(batch: HeteroData) -> tuple[list[int], dict[str, Tensor]]:
    counts = {kind: _num_nodes(batch[kind]) for kind in batch.node_types}
    per_hop = {kind: _per_hop(batch[kind], f"'{kind}'") for kind in batch.node_types}
    known = {kind: hops for kind, hops in per_hop.items() if hops is not None}
    if len(known) < len(per_hop) or len({len(hops) for hops in known.values()}) > 1:
        # The type of the seeds comes first, so that they are the first rows.
        kinds = sorted(counts, key=lambda kind: "batch_size" not in batch[kind])
        known = {kind: [counts[kind], 0] for kind in kinds}
    device = next(iter(batch.edge_index_dict.values())).device
    return _merged_rows(known, device)


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
