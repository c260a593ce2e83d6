"""Graph convolution: the backbone without attention."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tempergat import ops
from tempergat.nn.adjacency import resolve
from tempergat.nn.conv.linear import LinearLayer
from tempergat.ops import Graph


class GCNLayer(LinearLayer):
    r"""Graph convolution, :math:`D^{-1/2} (A + I) D^{-1/2} X W^\top + b`.

    Its parameters have the names and the initial values of PyG's ``GCNConv``. The
    aggregation is attention with equal logits: a mean over each target's edges.

    Args:
        in_channels: Features per node; -1 to take it from the first input.
        out_channels: Features per node of the output.
        residual: Whether to add a linear map of the input.
    """

    def _aggregate(self, z: Tensor, edge_index: Any) -> Tensor:
        size = (z.size(0), z.size(0))
        graph = resolve(
            edge_index, size, self_loops=True, reverse=False, static_shapes=True
        ).graph
        degree = _degree(graph).to(z.dtype).unsqueeze(-1)
        scaled = (z * degree.rsqrt()).unsqueeze(1)
        logits = torch.zeros(
            scaled.shape[:2],
            device=z.device,
            dtype=torch.promote_types(z.dtype, torch.float32),
        )
        mean, _ = ops.gat(graph, scaled, logits)
        return mean.squeeze(1) * degree.sqrt()


def _degree(graph: Graph) -> Tensor:
    """Edges per target, the self-loop included."""
    return graph.by_target.pointer.diff()
