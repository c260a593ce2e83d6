"""Sampled batches: what each layer of a model gets of them, and batch norm."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Protocol, runtime_checkable

import torch
import torch_geometric.nn
from torch import Tensor, nn

from tempergat.nn.conv.gcn import batch_degree, with_frontier
from tempergat.nn.projection import Features
from tempergat.ops import Graph, SparseFeatures


@runtime_checkable
class HasLayerGraphs(Protocol):
    """The graphs of a sampled batch, like ``batch.graph`` of a sampler."""

    def for_layers(self, num_layers: int, self_loops: bool) -> Sequence[Graph]:
        """One graph per layer, the first layer's first."""


def layer_inputs(
    given: Sequence[Graph] | HasLayerGraphs,
    num_layers: int,
    self_loops: bool,
    edge_attr: Tensor | None,
    edge_weight: Tensor | None,
    *,
    has_degrees: bool,
) -> list[tuple[Graph, dict[str, Any]]]:
    """The graph of each layer, with the further arguments of the layer.

    Args:
        given: The graphs themselves, or the object that makes them.
        num_layers: Number of layers.
        self_loops: Whether the layers add self-loops.
        edge_attr: Features of all edges of the batch.
        edge_weight: Weights of all edges of the batch.
        has_degrees: Whether layers normalise by degrees. They are those of the whole
            batch in every layer, as of PyG's ``GCNConv`` on a batch.

    Raises:
        TypeError: Something else than graphs was given.
        ValueError: There is not one graph per layer, or one does not follow another.
    """
    if isinstance(given, HasLayerGraphs):
        graphs = given.for_layers(num_layers, self_loops)
    else:
        graphs = given
        _check_graphs(graphs, num_layers)
    # A batch that others made may have its edges in another order.
    order = getattr(given, "edge_order", None)
    of_edges = {"edge_attr": edge_attr, "edge_weight": edge_weight}
    values = {
        name: x if order is None else x[order]
        for name, x in of_edges.items()
        if x is not None
    }
    parts: list[tuple[Graph, dict[str, Any]]] = []
    for graph in graphs:
        options: dict[str, Any] = {k: x[: graph.num_edges] for k, x in values.items()}
        if has_degrees:
            if not parts:
                degree = batch_degree(graph, options.get("edge_weight"))
                degree = with_frontier(degree, graph.num_src)
            options["degree"] = degree[: graph.num_src]
        parts.append((graph, options))
    return parts


def _check_graphs(graphs: Sequence[Graph], num_layers: int) -> None:
    for graph in graphs:
        if not isinstance(graph, Graph):
            raise TypeError(
                "a tuple in place of edge_index must hold one tempergat.Graph per "
                f"layer, got {type(graph).__name__}"
            )
    if len(graphs) != num_layers:
        raise ValueError(
            f"{len(graphs)} graphs were given for {num_layers} layers; give one per "
            "layer, the first layer's first"
        )
    for number, (graph, following) in enumerate(pairwise(graphs)):
        sources = following.num_src
        if sources > graph.num_dst:
            raise ValueError(
                f"layer {number + 2} has a graph with {sources} source nodes, but "
                f"layer {number + 1} one with {graph.num_dst} targets; the sources of "
                "a layer are among the targets of the one before"
            )


def first_nodes(h: Features, count: int) -> Features:
    """The features of the first nodes.

    Raises:
        ValueError: There are not so many nodes.
    """
    if h.size(0) == count:
        return h
    if h.size(0) < count:
        raise ValueError(
            f"x has {h.size(0)} rows, but the first layer's graph has {count} source "
            "nodes; give the features of all nodes of the batch"
        )
    dense = h.to_dense() if isinstance(h, SparseFeatures) else h
    return dense[:count]


def refuse_sampled(shape: Sequence[int], edges: Any, nodes_per_hop: Any) -> None:
    """Raises ValueError if many feature sets are given for a sampled batch."""
    is_batch = isinstance(edges, (tuple, list, HasLayerGraphs))
    if is_batch or nodes_per_hop is not None:
        raise ValueError(
            f"x has shape {list(shape)}, but a sampled batch takes one feature set; "
            "call the model for each set, or with the edges of the whole graph"
        )


def normalize_sets(norm: nn.Module, h: Tensor) -> Tensor:
    """Normalises many feature sets, [..., N, channels].

    A normalisation that keeps graphs apart keeps the sets apart.
    """
    rows, options = h.flatten(0, -2), {}
    if "batch" in inspect.signature(norm.forward).parameters:
        sets = torch.arange(h[..., 0, 0].numel(), device=h.device)
        options["batch"] = sets.repeat_interleave(h.size(-2))
    out: Tensor = norm(rows, **options)
    return out.view(h.shape)


class BatchNorm(torch_geometric.nn.BatchNorm):  # type: ignore[misc]
    """PyG's batch norm over the rows in use, also those that other processes hold.

    A single row is normalised as in evaluation: a sampled batch may be one node
    without neighbours, which has no variance.

    Args:
        in_channels: Width of the rows.

    Attributes:
        add_up: Adds a sum over rows to those of other processes, with gradients; None
            where this process has all rows.
    """

    add_up: Callable[[Tensor], Tensor] | None

    def __init__(self, in_channels: int) -> None:
        super().__init__(in_channels, allow_single_element=True)
        self.add_up = None

    def forward(self, x: Tensor, in_use: Tensor | None = None) -> Tensor:
        """Normalises every channel.

        Args:
            x: The rows, [N, in_channels].
            in_use: How many rows there are, 0-d, if the last ones are padding.
        """
        if not self.training or (self.add_up is None and in_use is None):
            out: Tensor = super().forward(x)
            return out
        # Half precision counts to 256, and its sums would lose digits.
        half, dtype = (torch.float16, torch.bfloat16), x.dtype
        x = x.float() if dtype in half else x
        count = x.new_tensor(x.size(0)) if in_use is None else in_use.to(x.dtype)
        count = count if self.add_up is None else self.add_up(count)
        # In two passes: a difference of large sums would lose digits.
        mean = self._sum(x, in_use) / count.clamp(min=1.0)
        variance = self._sum((x - mean).square(), in_use) / count.clamp(min=1.0)
        norm: nn.BatchNorm1d = self.module
        mean_before, variance_before = norm.running_mean, norm.running_var
        tracked = norm.num_batches_tracked
        assert mean_before is not None
        assert variance_before is not None
        assert tracked is not None
        assert norm.momentum is not None
        has_variance = count > 1
        unbiased = variance * (count / (count - 1.0).clamp(min=1.0))
        unbiased = torch.where(has_variance, unbiased, variance_before)
        mean = torch.where(has_variance, mean, mean_before)
        variance = torch.where(has_variance, variance, variance_before)
        with torch.no_grad():
            mean_before.lerp_(mean.to(mean_before.dtype), norm.momentum)
            variance_before.lerp_(unbiased.to(mean_before.dtype), norm.momentum)
            tracked += has_variance
        out = (x - mean) * (variance + norm.eps).rsqrt() * norm.weight + norm.bias
        return out.to(dtype)

    def _sum(self, rows: Tensor, in_use: Tensor | None) -> Tensor:
        """The sum over the rows of all processes, [in_channels]."""
        if in_use is not None:
            numbers = torch.arange(rows.size(0), device=rows.device)
            rows = torch.where((numbers < in_use).unsqueeze(1), rows, 0.0)
        total = rows.sum(0)
        return total if self.add_up is None else self.add_up(total)
