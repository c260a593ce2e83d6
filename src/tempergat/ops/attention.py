"""The entry points of graph attention; they pick a backend and can say why.

Temperature enters through its arguments: LeakyReLU is positively homogeneous, so
dividing the logits by T > 0 equals dividing the attention vectors by T.
"""

from typing import Literal, NamedTuple

from torch import Tensor

from tempergat.ops import fused, reference
from tempergat.ops.graph import Graph


class Choice(NamedTuple):
    """Which backend serves a call, and why each faster one refused."""

    backend: Literal["gpu", "cpu", "reference"]
    refused: dict[str, str]


def explain(graph: Graph, z: Tensor) -> Choice:
    """Says which backend would serve attention over these features, and why.

    Args:
        graph: The graph.
        z: The projected source features, [num_src, heads, channels].
    """
    refused: dict[str, str] = {}
    for name in ("gpu", "cpu"):
        reason = fused.refusal(name, graph, z)
        if reason is None:
            return Choice(name, refused)
        refused[name] = reason
    return Choice("reference", refused)


def gat(
    graph: Graph,
    z: Tensor,
    score_src: Tensor,
    score_dst: Tensor | None = None,
    edge_score: Tensor | None = None,
    *,
    negative_slope: float = 0.2,
    dropout: float = 0.0,
    dropout_seed: Tensor | None = None,
    return_weights: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """GAT attention with logits ``leaky(score_src[j] + score_dst[i] + edge_score)``.

    Args:
        graph: The graph; its self-loops are edges like all others.
        z: What is aggregated, [num_src, heads, channels].
        score_src: The source's part of the logit over T, float32 or float64,
            [num_src, heads].
        score_dst: The target's part, [num_dst, heads].
        edge_score: The edge's part, in the graph's edge order, [edges, heads].
        negative_slope: LeakyReLU's slope below zero.
        dropout: Rate of dropout on the attention weights.
        dropout_seed: One int64 seed per head, needed when ``dropout`` > 0.
        return_weights: Also return the weights (after dropout), [edges, heads].
    """
    arguments = (graph, z, score_src, score_dst, edge_score)
    settings = (negative_slope, dropout, dropout_seed)
    if explain(graph, z).backend != "reference":
        return fused.gat(*arguments, *settings, return_weights)
    out, weights = reference.gat(*arguments, *settings)
    return out, weights if return_weights else None


def gatv2(
    graph: Graph,
    z_src: Tensor,
    z_dst: Tensor,
    att: Tensor,
    edge: Tensor | None = None,
    *,
    negative_slope: float = 0.2,
    dropout: float = 0.0,
    dropout_seed: Tensor | None = None,
    return_weights: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """GATv2 attention with logits ``<att, leaky(z_src[j] + z_dst[i] + edge)>``.

    Args:
        graph: The graph; its self-loops are edges like all others.
        z_src: The sources' features, also what is aggregated,
            [num_src, heads, channels].
        z_dst: The targets' features, [num_dst, heads, channels].
        att: The attention vector over T, float32 or float64, [heads, channels].
        edge: The edges' features, in the graph's edge order,
            [edges, heads, channels].
        negative_slope: LeakyReLU's slope below zero.
        dropout: Rate of dropout on the attention weights.
        dropout_seed: One int64 seed per head, needed when ``dropout`` > 0.
        return_weights: Also return the weights (after dropout), [edges, heads].
    """
    arguments = (graph, z_src, z_dst, att, edge)
    settings = (negative_slope, dropout, dropout_seed)
    if explain(graph, z_src).backend != "reference":
        return fused.gatv2(*arguments, *settings, return_weights)
    out, weights = reference.gatv2(*arguments, *settings)
    return out, weights if return_weights else None
