"""Layers without attention: graph convolution, and one that ignores the graph."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn.inits import zeros

from tempergat import ops
from tempergat.nn.adjacency import resolve
from tempergat.nn.projection import Features, as_features, make_projection, project
from tempergat.nn.skip import ResidualKind, check_residual, gated_skip, make_beta
from tempergat.ops import Graph


class LinearLayer(nn.Module):
    r"""A linear layer that ignores the graph, :math:`X W^\top + b`.

    Args:
        in_channels: Features per node; -1 to take it from the first input.
        out_channels: Features per node of the output.
        residual: Whether to add a linear map of the input; ``"gate"`` to interpolate
            between it and the output by a learned share of each node.
    """

    def __init__(
        self, in_channels: int, out_channels: int, residual: ResidualKind
    ) -> None:
        check_residual(residual)
        super().__init__()
        sizes = (in_channels, out_channels)
        self.lin = make_projection(*sizes, bias=False)
        self.res = make_projection(*sizes, bias=False) if residual else None
        self.lin_beta = make_beta(out_channels) if residual == "gate" else None
        self.bias: nn.Parameter | None = nn.Parameter(torch.empty(out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws all parameters again."""
        zeros(self.bias)
        for lin in (self.lin, self.res, self.lin_beta):
            if lin is not None:
                lin.reset_parameters()

    def forward(
        self,
        x: Features,
        edge_index: Any,
        edge_attr: Tensor | None = None,
        edge_weight: Tensor | None = None,
        *,
        dropout_seed: Tensor | None = None,
        degree: Tensor | None = None,
    ) -> Tensor:
        """Runs the layer.

        Args:
            x: Node features, [N, in_channels]; [..., N, in_channels] for many feature
                sets on one graph.
            edge_index: The edges, in any form the attention layers take. If a
                ``tempergat.Graph`` has fewer targets than x has rows, they are the
                first rows.
            edge_attr: Must be None: the layer has no use for edge features.
            edge_weight: Must be None here; graph convolution takes a weight of 0 or
                more for every edge, [E].
            dropout_seed: Accepted as by the attention layers, and not used.
            degree: For graph convolution on a part of a graph: the degree of every
                row of x in the whole graph, its self-loop included; the sum of the
                weights where edges have weights.
        """
        if edge_attr is not None:
            raise ValueError(
                f"edge_attr of shape {list(edge_attr.shape)} was given, but "
                f"{type(self).__name__} has no use for edge features; do not pass "
                f"edge_attr, or use an attention method"
            )
        x = as_features(x)
        z = project(self.lin, x)
        if z.dim() > 2:
            # The sets are channels to a graph that all of them share.
            columns = z.movedim(-2, 0)
            out = self._aggregate(columns.flatten(1), edge_index, edge_weight, degree)
            out = out.view(out.size(0), *columns.shape[1:]).movedim(0, -2)
        else:
            out = self._aggregate(z, edge_index, edge_weight, degree)
        if self.bias is not None and self.lin_beta is None:
            out = out + self.bias
        if self.res is None:
            return out
        rows = x[..., : out.size(-2), :] if isinstance(x, Tensor) else x
        skipped = project(self.res, rows)[..., : out.size(-2), :]
        if self.lin_beta is None:
            return out + skipped
        out = gated_skip(out, skipped, self.lin_beta)
        return out if self.bias is None else out + self.bias

    def _aggregate(
        self, z: Tensor, edge_index: Any, edge_weight: Any, degree: Any
    ) -> Tensor:
        """Combines the projected features of neighbours; here, does not."""
        if edge_weight is not None:
            raise ValueError(
                f"edge_weight was given, but {type(self).__name__} has no use for it; "
                "leave it out, or use gcn"
            )
        is_part = isinstance(edge_index, Graph) and edge_index.num_dst < z.size(0)
        return z[: edge_index.num_dst] if is_part else z


class GCNLayer(LinearLayer):
    r"""Graph convolution, :math:`D^{-1/2} (A + I) D^{-1/2} X W^\top + b`.

    Its parameters have the names and the initial values of PyG's ``GCNConv``. With
    weights for the edges, A holds them and D their sums. A self-loop of the graph keeps
    its weight; one that is added has the weight 1.

    Args:
        in_channels: Features per node; -1 to take it from the first input.
        out_channels: Features per node of the output.
        residual: Whether to add a linear map of the input; ``"gate"`` to interpolate
            between it and the output by a learned share of each node.
    """

    def _aggregate(
        self, z: Tensor, edge_index: Any, edge_weight: Any, degree: Any
    ) -> Tensor:
        num_dst = z.size(0)
        if isinstance(edge_index, Graph):
            num_dst = min(edge_index.num_dst, num_dst)
        size, mode = (z.size(0), num_dst), ops.execution_mode()
        loops = {"self_loops": True, "reverse": False, "static_shapes": True}
        graph = resolve(edge_index, size, **loops, mode=mode).graph
        weights = None
        if edge_weight is None:
            own = _degree(graph).to(z.dtype)
        else:
            weights = _all_weights(graph, edge_index, edge_weight.to(z.dtype))
            own = _weighted_degree(graph, weights)
        of_sources = own if degree is None else degree.to(z.dtype)
        if of_sources.size(0) < z.size(0):
            of_sources = with_frontier(of_sources, z.size(0))
        scaled = z * of_sources.unsqueeze(-1).rsqrt()
        of_targets = own if degree is None else of_sources[:num_dst]
        out = ops.weighted_sum(graph, scaled, weights)
        return out * of_targets.unsqueeze(-1).rsqrt()


def batch_degree(graph: Graph, edge_weight: Tensor | None) -> Tensor:
    """The degrees of the targets of a sampled batch, self-loops included.

    Args:
        graph: All edges of the batch.
        edge_weight: Their weights, whose sums are then returned; None for none.
    """
    looped = graph.with_self_loops()
    if edge_weight is None:
        return _degree(looped)
    return _weighted_degree(looped, _all_weights(looped, graph, edge_weight))


def with_frontier(degree: Tensor, num_nodes: int) -> Tensor:
    """Degrees of targets, followed by those of nodes that have only a self-loop."""
    return torch.cat([degree, degree.new_ones(num_nodes - degree.size(0))])


def _degree(graph: Graph) -> Tensor:
    """Edges per target, the self-loop included."""
    # Traced graphs are padded; the order saves time in each call of all others.
    if graph.padded and ops.is_exporting():
        # ONNX has no stable sort, so its edges are counted.
        return _sum_at_targets(graph, torch.ones_like(graph.dst))
    return graph.by_target.pointer.diff()


def _sum_at_targets(graph: Graph, values: Tensor) -> Tensor:
    return ops.sum_by_target(graph, values)[: graph.num_dst]


def _all_weights(graph: Graph, edge_index: Any, edge_weight: Tensor) -> Tensor:
    """The weights of all edges of a graph with self-loops, in its order."""
    if isinstance(edge_index, Graph):
        src, dst = edge_index.src, edge_index.dst
    elif isinstance(edge_index, Tensor) and edge_index.layout == torch.strided:
        src, dst = edge_index[0], edge_index[1]
    else:
        raise ValueError(
            "edge_weight needs edge_index as a [2, E] tensor or a tempergat.Graph, got "
            f"{type(edge_index).__name__}; the values of a sparse matrix are not used"
        )
    if list(edge_weight.shape) != [graph.num_edges]:
        raise ValueError(
            f"edge_weight has shape {list(edge_weight.shape)}, but edge_index has "
            f"{graph.num_edges} edges; give one weight per edge"
        )
    num_given = graph.edge_id.size(0) - graph.num_loops
    given = edge_weight.index_select(0, graph.edge_id[:num_given].long())
    # Edges that are no self-loop write to a row of their own, so that no shape depends
    # on the edges.
    nodes = graph.num_loops
    loops = edge_weight.new_ones(nodes + 1)
    if src.size(0) == edge_weight.size(0):
        row = torch.where(src == dst, src, nodes).long()
        loops = loops.scatter(0, row, edge_weight)
    return torch.cat([given, loops[:nodes]])


def _weighted_degree(graph: Graph, weights: Tensor) -> Tensor:
    """The sum of the weights of each target's edges."""
    if graph.padded and ops.is_exporting():
        return _sum_at_targets(graph, weights)
    rows = graph.by_target
    by_target = weights.index_select(0, rows.position.long())
    # Unsafe leaves out a check that would wait for a GPU.
    offsets = rows.pointer.long()
    return torch.segment_reduce(by_target, "sum", offsets=offsets, unsafe=True)
