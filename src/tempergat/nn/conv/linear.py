"""A linear layer that ignores the graph: the backbone of the method ``mlp``."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn.inits import zeros

from tempergat.nn.projection import Features, as_features, make_projection, project
from tempergat.ops import Graph


class LinearLayer(nn.Module):
    r"""A linear layer that ignores the graph, :math:`X W^\top + b`.

    Args:
        in_channels: Features per node; -1 to take it from the first input.
        out_channels: Features per node of the output.
        residual: Whether to add a linear map of the input.
    """

    def __init__(self, in_channels: int, out_channels: int, residual: bool) -> None:
        super().__init__()
        self.lin = make_projection(in_channels, out_channels, bias=False)
        self.res = None
        if residual:
            self.res = make_projection(in_channels, out_channels, bias=False)
        self.bias = nn.Parameter(torch.empty(out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws all parameters again."""
        self.lin.reset_parameters()
        if self.res is not None:
            self.res.reset_parameters()
        zeros(self.bias)

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
            x: Node features, [N, in_channels].
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
        out = self._aggregate(z, edge_index, edge_weight, degree) + self.bias
        if self.res is None:
            return out
        rows = x[: out.size(0)] if isinstance(x, Tensor) else x
        return out + project(self.res, rows)[: out.size(0)]

    def _aggregate(
        self,
        z: Tensor,
        edge_index: Any,
        edge_weight: Tensor | None,
        degree: Tensor | None,
    ) -> Tensor:
        """Combines the projected features of neighbours; here, does not."""
        if edge_weight is not None:
            raise ValueError(
                f"edge_weight was given, but {type(self).__name__} has no use for it; "
                "leave it out, or use gcn"
            )
        is_part = isinstance(edge_index, Graph) and edge_index.num_dst < z.size(0)
        return z[: edge_index.num_dst] if is_part else z
