"""Skip connections: residuals, and gated ones whose share is learned for every node."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn
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


class SkipLayer:
    """The part of an attention layer that joins its heads and adds to the output."""

    def _make_residual_and_bias(self: Any, bias: bool) -> None:
        total = self.out_channels * (self.heads if self.concat else 1)
        if self.residual:
            self.res = make_projection(self._side_channels(1), total, bias=False)
        else:
            self.register_parameter("res", None)
        self.lin_beta = make_beta(total) if self.residual == "gate" else None
        if bias:
            self.bias = nn.Parameter(torch.empty(total))
        else:
            self.register_parameter("bias", None)

    def skip_map(self: Any) -> Linear | None:
        """The linear map of the targets' features that is added to the output."""
        res: Linear | None = self.res
        return res

    def _adds_residual_alone(self: Any) -> bool:
        """Whether the output is the attention's plus the residual, without a bias."""
        return self.lin_beta is None and self.bias is None

    def _combine(self: Any, out: Tensor, residual: Tensor | None) -> Tensor:
        """Joins the heads, then adds residual and bias; a gated skip mixes both."""
        if not self.concat:
            # Other aggregations may give several values per channel.
            channels = out.size(1) // self.heads
            out = out.view(-1, self.heads, channels).mean(dim=1)
        if self.lin_beta is not None:
            # Targets without features count as zeros.
            skipped = torch.zeros_like(out) if residual is None else residual
            out = gated_skip(out, skipped, self.lin_beta)
        elif residual is not None:
            out = out + residual
        if self.bias is not None:
            out = out + self.bias
        return out
