"""The entry points of graph attention; they pick a backend and can say why.

Temperature enters through its arguments: LeakyReLU is positively homogeneous, so
dividing the logits by T > 0 equals dividing the attention vectors by T.
"""

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from tempergat.ops import fused, reference
from tempergat.ops.graph import Graph
from tempergat.ops.torch_internals import is_tracing


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
    _check_sources("z", z, graph)
    heads = (z.size(1),)
    _check_shape("score_src", score_src, graph.num_src, heads)
    _check_shape("score_dst", score_dst, graph.num_dst, heads)
    _check_shape("edge_score", edge_score, graph.src.size(0), heads)
    _check_dropout(dropout, dropout_seed, z.size(1))
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
    _check_sources("z_src", z_src, graph)
    row = z_src.shape[1:]
    _check_shape("z_dst", z_dst, graph.num_dst, row)
    _check_shape("att", att, row[0], row[1:])
    _check_shape("edge", edge, graph.src.size(0), row)
    _check_dropout(dropout, dropout_seed, row[0])
    arguments = (graph, z_src, z_dst, att, edge)
    settings = (negative_slope, dropout, dropout_seed)
    if explain(graph, z_src).backend != "reference":
        return fused.gatv2(*arguments, *settings, return_weights)
    out, weights = reference.gatv2(*arguments, *settings)
    return out, weights if return_weights else None


def _check_sources(name: str, z: Tensor, graph: Graph) -> None:
    if z.dim() != 3:
        raise ValueError(
            f"{name} must have shape [{graph.num_src}, heads, channels], got "
            f"{list(z.shape)}"
        )
    _check_shape(name, z, graph.num_src, z.shape[1:])


def _check_shape(name: str, x: Tensor | None, rows: int, row: tuple[int, ...]) -> None:
    """Kernels trust the shapes: what is not there would be read all the same."""
    # A compiler is not to fix the sizes of what it traces.
    if x is None or is_tracing() or x.shape == (rows, *row):
        return
    raise ValueError(
        f"{name} must have shape {[rows, *row]}, as the graph and the features have, "
        f"got {list(x.shape)}"
    )


def _check_dropout(dropout: float, seed: Tensor | None, heads: int) -> None:
    if dropout == 0.0:
        return
    if not 0.0 < dropout <= 1.0:
        raise ValueError(f"dropout must be between 0 and 1, got {dropout}")
    if seed is None or seed.dtype != torch.int64 or seed.numel() != heads:
        got = "none" if seed is None else f"{seed.dtype} of shape {list(seed.shape)}"
        raise ValueError(
            f"dropout needs dropout_seed, one int64 for each of {heads} heads, got "
            f"{got}"
        )
