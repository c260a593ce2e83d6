"""Skip connections: residuals, and gated ones whose share is learned for every node."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch_geometric.nn.dense.linear import Linear

from tempergat.nn.projection import make_projection, project

ResidualKind = bool | Literal["gate"]


def check_residual(kind: object) -> None:
    """Raises ValueError unless a layer can have such a residual."""
    if not isinstance(kind, bool) and kind != "gate":
        raise ValueError(f"residual must be True, False or 'gate', got {kind!r}")


def make_beta(width: int) -> Linear:
    """The linear map ``lin_beta`` of a gated skip between rows of a width."""
    return make_projection(3 * width, 1, bias=False)


def gated_skip(aggregated: Tensor, skipped: Tensor, lin_beta: Linear) -> Tensor:
    """``(1 - b) * aggregated + b * skipped`` with one b for every node.

    As in PyG's ``TransformerConv(beta=True)``, b is the sigmoid of a linear map of
    both and their difference.

    Args:
        aggregated: What attention gives, [..., N, width].
        skipped: The linear map of the layer's input, of the same shape.
        lin_beta: The map of 3 * width features to one, from `make_beta`.
    """
    both = torch.cat([aggregated, skipped, aggregated - skipped], dim=-1)
    share = project(lin_beta, both).sigmoid()
    return share * skipped + (1 - share) * aggregated
