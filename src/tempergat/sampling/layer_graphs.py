"""The graphs of a batch that the layers of a model use, one for each layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tempergat.ops import Graph, gpu_sampling, make_layer_graph
from tempergat.sampling.engines import gpu
from tempergat.sampling.engines.hops import SampledHops, TypedHops
from tempergat.sampling.layer_edges import edges_of_batch, edges_of_typed_hops


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
        pointer: Where the edges of each target begin and end, int32. Nodes behind the
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
        return cls(*edges_of_typed_hops(hops), training=training)

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
        return cls(*edges_of_batch(batch), training=training)

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
