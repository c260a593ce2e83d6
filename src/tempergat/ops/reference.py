"""Graph attention in plain PyTorch: slow, easy to check, the specification.

Shape suffixes: E edges (in the graph's order), S source nodes, T target nodes,
H heads, C channels per head, D features per edge.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from tempergat.ops.graphs.graph import Graph
from tempergat.ops.random import keep_factor
from tempergat.ops.torch_internals import in_forward_mode, is_exporting

# What a learnt temperature is at least.
EPSILON = 1e-6


def gat(
    graph: Graph,
    z_SHC: Tensor,
    att_src_HC: Tensor,
    att_dst_HC: Tensor | None,
    z_dst_THC: Tensor | None,
    edge_score_EH: Tensor | None,
    theta_H: Tensor | None,
    negative_slope: float,
) -> Tensor:
    """GAT: ``e = leaky(<att_src, z[j]> / T + <att_dst, z_dst[i]> / T + edge_score)``.

    Without ``z_dst`` the targets are the first of the sources.
    """
    u_EH = at_source(graph, _score(z_SHC, att_src_HC, theta_H))
    if att_dst_HC is not None:
        z_dst_THC = z_SHC[: graph.num_dst] if z_dst_THC is None else z_dst_THC
        u_EH = u_EH + at_target(graph, _score(z_dst_THC, att_dst_HC, theta_H))
    if edge_score_EH is not None:
        u_EH = u_EH + edge_score_EH
    return F.leaky_relu(u_EH, negative_slope)


def _score(z_NHC: Tensor, att_HC: Tensor, theta_H: Tensor | None) -> Tensor:
    """The nodes' part of GAT's logits, [N, H]."""
    divided_HC = divide_by_temperature(att_HC, theta_H)
    return (z_NHC.to(divided_HC.dtype) * divided_HC).sum(-1)


def gatv2(
    graph: Graph,
    z_src_SHC: Tensor,
    z_dst_THC: Tensor,
    att_HC: Tensor,
    edge_EHC: Tensor | None,
    edge_x_ED: Tensor | None,
    edge_map_HCD: Tensor | None,
    theta_H: Tensor | None,
    negative_slope: float,
) -> Tensor:
    """GATv2: ``e = <att, leaky(z_src[j] + z_dst[i] + edge + edge_map edge_x)> / T``."""
    att_HC = divide_by_temperature(att_HC, theta_H)
    v_EHC = at_source(graph, z_src_SHC).to(att_HC.dtype)
    v_EHC = v_EHC + at_target(graph, z_dst_THC)
    if edge_EHC is not None:
        v_EHC = v_EHC + edge_EHC
    if edge_x_ED is not None and edge_map_HCD is not None:
        v_EHC = v_EHC + project_edges(edge_x_ED, edge_map_HCD)
    return (F.leaky_relu(v_EHC, negative_slope) * att_HC).sum(-1)


def dot_product(
    graph: Graph,
    value_SHC: Tensor,
    key_SHC: Tensor,
    query_THC: Tensor,
    edge_x_ED: Tensor | None,
    edge_map_HCD: Tensor | None,
    temperature_H: Tensor | None,
    scale: float,
) -> tuple[Tensor, Tensor]:
    """Dot products: ``e = <query[i], key[j] + edge> scale / T``.

    ``edge`` is ``edge_map edge_x``. Also returns what is summed, ``value[j] + edge``.
    """
    key_EHC, value_EHC = at_source(graph, key_SHC), at_source(graph, value_SHC)
    if edge_x_ED is not None and edge_map_HCD is not None:
        edge_EHC = project_edges(edge_x_ED, edge_map_HCD).to(value_EHC.dtype)
        key_EHC, value_EHC = key_EHC + edge_EHC, value_EHC + edge_EHC
    query_EHC = at_least_float32(at_target(graph, query_THC))
    logit_EH = (query_EHC * key_EHC).sum(-1) * scale
    if temperature_H is not None:
        logit_EH = logit_EH / temperature_H
    return logit_EH, value_EHC


def temperature_of(theta: Tensor) -> Tensor:
    """``softplus(theta) + EPSILON``, in at least float32."""
    softplus = F.softplus(at_least_float32(theta))
    if in_forward_mode():
        # In forward mode, a 0-d tensor plus a Python number has a float64 tangent.
        return softplus + torch.full_like(softplus, EPSILON)
    return softplus + EPSILON


def divide_by_temperature(x: Tensor, theta: Tensor | None) -> Tensor:
    """``x / T`` in at least float32.

    Args:
        x: A factor of the logits, [..., H, C].
        theta: Gives T of all heads, 0-d, or of each head, [H]; None for T = 1.
    """
    x = at_least_float32(x)
    return x if theta is None else x / temperature_of(theta).view(-1, 1)


def at_least_float32(x: Tensor) -> Tensor:
    """Converts half precision to float32; other types stay."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def project_edges(edge_x_ED: Tensor, edge_map_HCD: Tensor) -> Tensor:
    """The projected features of every edge, [E, H, C]."""
    flat_EF = F.linear(edge_x_ED, edge_map_HCD.flatten(0, 1))
    return flat_EF.view(-1, *edge_map_HCD.shape[:2])


def at_source(graph: Graph, x_S: Tensor) -> Tensor:
    """For each edge the row of its source."""
    return x_S.index_select(0, graph.src.long())


def at_target(graph: Graph, x_T: Tensor) -> Tensor:
    """For each edge the row of its target."""
    if graph.padded:
        # The row of the edges that a traced graph has dropped.
        x_T = F.pad(x_T, (0, 0) * (x_T.dim() - 1) + (0, 1))
    return x_T.index_select(0, graph.dst.long())


def softmax_by_target(graph: Graph, logit_EH: Tensor) -> Tensor:
    """Softmax of the logits over the edges of each target.

    A logit of minus infinity has weight 0, even where a target has no other.
    """
    rows = graph.num_dst + 1
    with torch.no_grad():
        max_TH = logit_EH.new_full((rows, *logit_EH.shape[1:]), -torch.inf)
        index = _target_of_values(graph, logit_EH)
        max_TH = max_TH.scatter_reduce(0, index, logit_EH, "amax")
        max_TH = max_TH.masked_fill(max_TH == -torch.inf, 0.0)
    weight_EH = (logit_EH - max_TH.index_select(0, graph.dst.long())).exp()
    total_TH = sum_by_target(graph, weight_EH)
    total_TH = total_TH.masked_fill(total_TH == 0.0, 1.0)
    return weight_EH / total_TH.index_select(0, graph.dst.long())


def sum_by_target(graph: Graph, x_E: Tensor) -> Tensor:
    """The sum over the edges of each target; the last row belongs to no node."""
    total_T = x_E.new_zeros(graph.num_dst + 1, *x_E.shape[1:])
    if is_exporting():
        # The tracing ONNX exporter makes index_add an assignment: of several edges at
        # a target one would remain.
        return total_T.scatter_add(0, _target_of_values(graph, x_E), x_E)
    return total_T.index_add(0, graph.dst.long(), x_E)


def _target_of_values(graph: Graph, x_E: Tensor) -> Tensor:
    """The target of every value, in the shape of the values."""
    return graph.dst.long().view(-1, *[1] * (x_E.dim() - 1)).expand_as(x_E)


def attend(
    graph: Graph,
    logit_EH: Tensor,
    value_EHC: Tensor,
    edge_weight_EH: Tensor | None,
    edge_bias_EH: Tensor | None,
    dropout: float,
    dropout_seed_H: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """What every attention does with its logits: softmax, dropout, weighted sum.

    Returns:
        The output [T, H, C] in the type of the values, and the weights [E, H], after
        dropout and times ``edge_weight``.
    """
    if edge_bias_EH is not None:
        logit_EH = logit_EH + edge_bias_EH
    weight_EH = softmax_by_target(graph, logit_EH)
    if dropout > 0.0:
        assert dropout_seed_H is not None
        edge_id_E1 = graph.edge_id.unsqueeze(-1)
        weight_EH = weight_EH * keep_factor(
            dropout_seed_H, edge_id_E1, dropout, weight_EH.dtype
        )
    if edge_weight_EH is not None:
        weight_EH = weight_EH * edge_weight_EH
    message_EHC = weight_EH.unsqueeze(-1) * value_EHC
    out_THC = sum_by_target(graph, message_EHC)[: graph.num_dst]
    return out_THC.to(value_EHC.dtype), weight_EH
