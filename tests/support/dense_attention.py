"""The paper's equations written straight down on N x N matrices.

Nothing of tempergat is used here: an edge (j, i) is an entry of an adjacency matrix,
the softmax is a masked softmax over its columns.
"""

import torch
from torch import Tensor


def adjacency(
    edge_index: Tensor, num_src: int, num_dst: int, self_loops: bool
) -> Tensor:
    """Number of edges from j to i at [i, j]; at most one where loops are added."""
    counts = torch.zeros(num_dst, num_src, dtype=torch.float64)
    for j, i in edge_index.t().tolist():
        counts[i, j] += 1
    if self_loops:
        for i in range(min(num_src, num_dst)):
            counts[i, i] = 1
    return counts


def masked_softmax(logit_ij: Tensor, counts_ij: Tensor) -> Tensor:
    """Softmax over j of [i, j, H] where an edge that stands twice counts twice."""
    masked = logit_ij.masked_fill(counts_ij.unsqueeze(-1) == 0, -torch.inf)
    top = masked.max(dim=1, keepdim=True).values
    top = torch.where(torch.isfinite(top), top, torch.zeros_like(top)).detach()
    weight = (masked - top).exp() * counts_ij.unsqueeze(-1)
    total = weight.sum(dim=1, keepdim=True)
    return weight / torch.where(total == 0, torch.ones_like(total), total)
