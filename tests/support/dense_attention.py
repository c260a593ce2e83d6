"""The paper's equations written straight down on N x N matrices.

Nothing of tempergat is used here: an edge (j, i) is an entry of an adjacency matrix,
the softmax is a masked softmax over its columns.
"""

import torch
import torch.nn.functional as F
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


def layer(
    backbone: str,
    p: dict[str, Tensor],
    x: Tensor,
    counts: Tensor,
    heads: int,
    concat: bool,
    gate: str | None,
    tempered: bool,
    negative_slope: float = 0.2,
) -> Tensor:
    """One attention layer with parameters named as in the layer's state_dict."""
    split = (len(x), heads, -1)
    g = (
        torch.sigmoid(x @ p["lin_gate.weight"].t() + p["lin_gate.bias"])
        if gate
        else None
    )
    if backbone == "gat":
        left = right = x @ p["lin.weight"].t()
    else:
        left = x @ p["lin_l.weight"].t() + p["lin_l.bias"]
        right = x @ p["lin_r.weight"].t() + p["lin_r.bias"]
    if gate == "first":
        left, right = left * g, right * g
    left, right = left.view(split), right.view(split)
    if backbone == "gat":
        target = (right * p["att_dst"]).sum(-1)
        source = (left * p["att_src"]).sum(-1)
        logit = F.leaky_relu(target.unsqueeze(1) + source.unsqueeze(0), negative_slope)
    else:
        pair = F.leaky_relu(right.unsqueeze(1) + left.unsqueeze(0), negative_slope)
        logit = (pair * p["att"]).sum(-1)
    if tempered:
        logit = logit / (F.softplus(p["theta"]) + 1e-6)
    alpha = masked_softmax(logit, counts)
    out = torch.einsum("ijh,jhc->ihc", alpha, left)
    if gate == "post":
        out = out * g.view(split)
    out = out.flatten(1) if concat else out.mean(1)
    return out + p["bias"]
