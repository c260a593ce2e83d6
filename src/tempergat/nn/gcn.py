"""The GCN layer, the comparison's third backbone."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn.inits import zeros

from tempergat import ops
from tempergat.nn.adjacency import resolve
from tempergat.nn.projection import Features, as_features, make_projection, project
from tempergat.ops.graph import Graph


class GCNLayer(nn.Module):
    r"""Graph convolution, :math:`D^{-1/2} (A + I) D^{-1/2} X W^\top + b`.

    Its parameters have the names and the initial values of PyG's ``GCNConv``. The
    aggregation is attention with equal logits: a mean over each target's edges.

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
        """Draws all parameters anew."""
        self.lin.reset_parameters()
        if self.res is not None:
            self.res.reset_parameters()
        zeros(self.bias)

    def forward(
        self, x: Features, edge_index: Any, *, dropout_seed: Tensor | None = None
    ) -> Tensor:
        """Runs the layer; ``dropout_seed`` is there for the sake of its peers."""
        x = as_features(x)
        size = (x.size(0), x.size(0))
        graph = resolve(
            edge_index, size, self_loops=True, reverse=False, static_shapes=True
        ).graph
        z = project(self.lin, x)
        degree = _degree(graph).to(z.dtype).unsqueeze(-1)
        scaled = (z * degree.rsqrt()).unsqueeze(1)
        logits = torch.zeros(
            scaled.shape[:2],
            device=z.device,
            dtype=torch.promote_types(z.dtype, torch.float32),
        )
        mean, _ = ops.gat(graph, scaled, logits)
        out = mean.squeeze(1) * degree.sqrt() + self.bias
        return out if self.res is None else out + project(self.res, x)


def _degree(graph: Graph) -> Tensor:
    """Edges per target, the self-loop included."""
    return graph.by_target.pointer.diff()
