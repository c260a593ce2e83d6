"""The graphs of a batch that the layers of a model use, one for each layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tempergat.ops import Graph, Rows, gpu_sampling
from tempergat.sampling import gpu
from tempergat.sampling.hops import SampledHops, TypedHops


class LayerGraphs:
    """A sampled batch as one graph per layer, each without work that is not needed.

    A layer with d layers after it computes the nodes at most d hops from a seed, from
    those at most d + 1 hops away. Both are the first rows of the batch. The seeds'
    outputs are those of running every layer on the whole batch, because a node's
    edges are all drawn when it is expanded.

    With more layers than hops, the first layers use the whole batch: the nodes of the
    last hop have no sampled neighbours, and a layer gives them what it gives to any
    node without neighbours. With fewer layers than hops, only the first hops are
    used, and the first layer takes the first ``num_src`` rows of the features.

    Attributes:
        source: The source of each edge, int32.
        target: The target of each edge, int32, ascending.
        pointer: Where the edges of each target begin and end, int32. Nodes behind the
            last target have no edges.
        nodes_per_hop: Number of seeds, then of new nodes in each hop.
        edges_per_hop: Number of edges in each hop.
        training: Whether a backward pass will need the edges by source.
        rows_of_type: In a typed batch, the rows that the nodes of each type have in
            these graphs, int64; None otherwise.
    """

    def __init__(
        self,
        source: Tensor,
        target: Tensor,
        pointer: Tensor,
        nodes_per_hop: Sequence[int],
        edges_per_hop: Sequence[int],
        *,
        training: bool = True,
        rows_of_type: dict[str, Tensor] | None = None,
    ) -> None:
        self.source, self.target, self.pointer = source, target, pointer
        self.nodes_per_hop = list(nodes_per_hop)
        self.edges_per_hop = list(edges_per_hop)
        self.training = training
        self.rows_of_type = rows_of_type
        self._made: dict[tuple[int, bool], Graph] = {}
        self._wanted: set[tuple[int, bool]] | None = None

    @classmethod
    def of_hops(cls, hops: SampledHops, *, training: bool = True) -> LayerGraphs:
        """The graphs of a sampled batch."""
        return cls(
            hops.source,
            hops.target,
            hops.pointer,
            hops.nodes_per_hop,
            hops.edges_per_hop,
            training=training,
        )

    @classmethod
    def of_typed_hops(cls, hops: TypedHops, *, training: bool = True) -> LayerGraphs:
        """The graphs of a typed batch, with the nodes of all types in one graph.

        Its rows are the seeds, then for each hop the new nodes of each type in turn.
        """
        per_hop = list(zip(*hops.nodes_per_hop.values(), strict=True))
        device = next(iter(hops.n_id.values())).device
        rows: dict[str, list[Tensor]] = {kind: [] for kind in hops.n_id}
        count = 0
        for sizes in per_hop:
            for kind, size in zip(hops.n_id, sizes, strict=True):
                rows[kind].append(torch.arange(count, count + size, device=device))
                count += size
        rows_of_type = {kind: torch.cat(parts) for kind, parts in rows.items()}
        nodes = [sum(sizes) for sizes in per_hop]
        edges = [sum(sizes) for sizes in zip(*hops.edges_per_hop.values(), strict=True)]
        source, target = _merged_edges(hops, rows_of_type)
        # Stable: the edges of a target stay in the order of the edge types.
        target, order = torch.sort(target, stable=True)
        targets = torch.arange(sum(nodes[:-1]) + 1, device=device)
        return cls(
            source.index_select(0, order).int(),
            target.int(),
            torch.searchsorted(target, targets).int(),
            nodes,
            edges,
            training=training,
            rows_of_type=rows_of_type,
        )

    @property
    def num_nodes(self) -> int:
        """Number of nodes in the batch."""
        return sum(self.nodes_per_hop)

    def for_layers(self, num_layers: int, self_loops: bool) -> tuple[Graph, ...]:
        """The graph of each layer, the first layer's first.

        Args:
            num_layers: Number of layers of the model.
            self_loops: Whether every target gets exactly one self-loop, as layers with
                ``add_self_loops=True`` want it.
        """
        if self._wanted is not None:
            self._wanted.add((num_layers, self_loops))
        depths = range(num_layers - 1, -1, -1)
        kernels = gpu_sampling(self.source.device)
        if kernels is not None:
            self._make_on_gpu(kernels, depths, self_loops)
        return tuple(self._graph(depth, self_loops) for depth in depths)

    def prepare(self, wanted: set[tuple[int, bool]]) -> None:
        """Makes graphs ahead.

        Args:
            wanted: What `for_layers` was called with before. Later calls are added, for
                the batches that come after this one.
        """
        for num_layers, self_loops in sorted(wanted):
            self.for_layers(num_layers, self_loops)
        self._wanted = wanted

    def _make_on_gpu(
        self, kernels: Any, depths: Sequence[int], self_loops: bool
    ) -> None:
        """Makes the graphs that are missing, all at once."""
        missing = [
            depth
            for depth in dict.fromkeys(min(d, len(self.edges_per_hop)) for d in depths)
            if (depth, self_loops) not in self._made
        ]
        if not missing:
            return
        graphs = gpu.layer_graphs(
            kernels,
            (self.source, self.target, self.pointer),
            self.nodes_per_hop,
            self.edges_per_hop,
            missing,
            self_loops=self_loops,
            training=self.training,
        )
        for depth, graph in zip(missing, graphs, strict=True):
            self._made[depth, self_loops] = graph

    def _graph(self, depth: int, self_loops: bool) -> Graph:
        """The graph of a layer with ``depth`` layers after it."""
        # More layers than hops change nothing any more.
        key = (min(depth, len(self.edges_per_hop)), self_loops)
        if key not in self._made:
            self._made[key] = self._make(*key)
        return self._made[key]

    def _make(self, depth: int, self_loops: bool) -> Graph:
        num_src = sum(self.nodes_per_hop[: depth + 2])
        num_dst = sum(self.nodes_per_hop[: depth + 1])
        num_edges = sum(self.edges_per_hop[: depth + 1])
        source, target = self.source[:num_edges], self.target[:num_edges]
        if self_loops:
            edges = torch.stack([source, target])
            graph = Graph(edges, (num_src, num_dst), self_loops=True, check=False)
        else:
            edge_id = torch.arange(num_edges, dtype=torch.int32, device=source.device)
            pointer = self.pointer[: num_dst + 1]
            if pointer.size(0) <= num_dst:
                missing = num_dst + 1 - pointer.size(0)
                pointer = torch.cat([pointer, pointer[-1:].expand(missing)])
            graph = Graph.ready(
                source,
                target,
                edge_id,
                (num_src, num_dst),
                by_target=Rows(pointer, source, edge_id, edge_id),
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
            training=self.training,
            rows_of_type=rows and {kind: move(x) for kind, x in rows.items()},
        )
        moved._made = {key: graph.to(device) for key, graph in self._made.items()}
        return moved

    def __repr__(self) -> str:
        return (
            f"LayerGraphs(nodes_per_hop={self.nodes_per_hop}, "
            f"edges_per_hop={self.edges_per_hop})"
        )


def _merged_edges(
    hops: TypedHops, rows_of_type: dict[str, Tensor]
) -> tuple[Tensor, Tensor]:
    """The ends of all edges as rows of the merged graph, type by type."""
    sources = [rows_of_type[kind[0]][x.long()] for kind, x in hops.source.items()]
    targets = [rows_of_type[kind[2]][x.long()] for kind, x in hops.target.items()]
    return torch.cat(sources), torch.cat(targets)
