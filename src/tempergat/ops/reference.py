"""Graph attention in plain PyTorch: slow, obviously right, the specification.

Shape suffixes: E edges (in the graph's order), S source nodes, T target nodes,
H heads, C channels per head.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from tempergat.ops.graph import Graph
from tempergat.ops.random import keep_factor


def gat(
    graph: Graph,
    z_SHC: Tensor,
    score_src_SH: Tensor,
    score_dst_TH: Tensor | None,
    edge_score_EH: Tensor | None,
    negative_slope: float,
    dropout: float,
    dropout_seed_H: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """GAT: ``e = leaky(score_src[j] + score_dst[i] + edge_score)``."""
    u_EH = score_src_SH.index_select(0, graph.src)
    if score_dst_TH is not None:
        u_EH = u_EH + _pad(score_dst_TH, graph).index_select(0, graph.dst)
    if edge_score_EH is not None:
        u_EH = u_EH + edge_score_EH
    logit_EH = F.leaky_relu(u_EH, negative_slope)
    return _attend(graph, logit_EH, z_SHC, dropout, dropout_seed_H)


def gatv2(
    graph: Graph,
    z_src_SHC: Tensor,
    z_dst_THC: Tensor,
    att_HC: Tensor,
    edge_EHC: Tensor | None,
    negative_slope: float,
    dropout: float,
    dropout_seed_H: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """GATv2: ``e = <att, leaky(z_src[j] + z_dst[i] + edge)>``."""
    v_EHC = z_src_SHC.index_select(0, graph.src).to(att_HC.dtype)
    v_EHC = v_EHC + _pad(z_dst_THC, graph).index_select(0, graph.dst)
    if edge_EHC is not None:
        v_EHC = v_EHC + edge_EHC
    logit_EH = (F.leaky_relu(v_EHC, negative_slope) * att_HC).sum(-1)
    return _attend(graph, logit_EH, z_src_SHC, dropout, dropout_seed_H)


def softmax_by_target(graph: Graph, logit_EH: Tensor) -> Tensor:
    """Softmax of the logits over the edges of each target."""
    rows = graph.num_dst + 1
    dst = graph.dst.long()
    with torch.no_grad():
        top_TH = logit_EH.new_full((rows, *logit_EH.shape[1:]), -torch.inf)
        index = dst.view(-1, *[1] * (logit_EH.dim() - 1)).expand_as(logit_EH)
        top_TH = top_TH.scatter_reduce(0, index, logit_EH, "amax")
    weight_EH = (logit_EH - top_TH.index_select(0, dst)).exp()
    total_TH = torch.zeros_like(top_TH).index_add(0, dst, weight_EH)
    return weight_EH / total_TH.index_select(0, dst)


def _attend(
    graph: Graph,
    logit_EH: Tensor,
    z_SHC: Tensor,
    dropout: float,
    dropout_seed_H: Tensor | None,
) -> tuple[Tensor, Tensor]:
    weight_EH = softmax_by_target(graph, logit_EH)
    if dropout > 0.0:
        assert dropout_seed_H is not None
        edge_id_E1 = graph.edge_id.unsqueeze(-1)
        weight_EH = weight_EH * keep_factor(
            dropout_seed_H, edge_id_E1, dropout, weight_EH.dtype
        )
    message_EHC = weight_EH.unsqueeze(-1) * z_SHC.index_select(0, graph.src)
    out_THC = message_EHC.new_zeros(graph.num_dst + 1, *message_EHC.shape[1:])
    out_THC = out_THC.index_add(0, graph.dst, message_EHC)[: graph.num_dst]
    return out_THC.to(z_SHC.dtype), weight_EH


def _pad(x_T: Tensor, graph: Graph) -> Tensor:
    """Room for the row that takes the edges a traced graph has dropped."""
    return F.pad(x_T, (0, 0) * (x_T.dim() - 1) + (0, 1)) if graph.padded else x_T
