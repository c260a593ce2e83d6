"""Batch norm over the rows that count, also where other processes hold some of them."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch_geometric.nn
from torch import Tensor, nn


class BatchNorm(torch_geometric.nn.BatchNorm):  # type: ignore[misc]
    """PyG's batch norm; a single row is normalised as in evaluation.

    A sampled batch may be one node without neighbours, which has no variance.

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
            found: Tensor = super().forward(x)
            return found
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
            mean_before.lerp_(mean, norm.momentum)
            variance_before.lerp_(unbiased, norm.momentum)
            tracked += has_variance
        return (x - mean) * (variance + norm.eps).rsqrt() * norm.weight + norm.bias

    def _sum(self, rows: Tensor, in_use: Tensor | None) -> Tensor:
        """The sum over the rows of all processes, [in_channels]."""
        if in_use is not None:
            numbers = torch.arange(rows.size(0), device=rows.device)
            rows = torch.where((numbers < in_use).unsqueeze(1), rows, 0.0)
        found = rows.sum(0)
        return found if self.add_up is None else self.add_up(found)
