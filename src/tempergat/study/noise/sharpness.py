"""How sharp attention really is.

A learned temperature alone does not say: multiplying T and the attention vectors by
the same number changes nothing. What the softmax sees is e/T, so its spread over a
target's edges is measured, and the entropy of the weights that come out.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tempergat.nn import AttentionLayer, NodeClassifier
from tempergat.ops import Graph
from tempergat.training import SeedGroup, State


@dataclass(frozen=True)
class Sharpness:
    """Means over heads and over targets with two edges or more, [runs, layers].

    Attributes:
        spread: Standard deviation of e/T over a target's edges.
        entropy: Entropy of its attention weights over the logarithm of its degree,
            the self-loop counted: 1 is uniform, 0 is all on one edge.
    """

    spread: Tensor
    entropy: Tensor


def group_sharpness(group: SeedGroup, state: State) -> Sharpness:
    """The sharpness of every run's layers in evaluation, over all nodes.

    Args:
        group: The runs; those of a method without attention have no layers here.
        state: Parameters and buffers, like `Training.best`.
    """
    graph = group.task.graph
    # The study refuses typed graphs, which have a graph for each layer.
    assert isinstance(graph, Graph)
    graph = graph.with_self_loops()
    found: list[Tensor] = []

    def weigh(layer: Any, inputs: tuple[Any, ...], _: Any) -> None:
        _, (_, weights) = layer.forward(*inputs, return_attention_weights=True)
        found.append(torch.stack(sharpness_of(graph, weights)))

    def look(_: NodeClassifier) -> Tensor:
        return torch.stack(found, dim=-1)

    layers = [m for m in group.model.convs if isinstance(m, AttentionLayer)]
    if not layers:
        nothing = torch.empty(len(group.seeds), 0, device=group.task.device)
        return Sharpness(nothing, nothing)
    hooks = [layer.register_forward_hook(weigh) for layer in layers]
    try:
        both = group.observe(state, look)
    finally:
        for hook in hooks:
            hook.remove()
    return Sharpness(both[:, 0], both[:, 1])


def sharpness_of(graph: Graph, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Mean spread of e/T and mean relative entropy of attention weights.

    The logarithm of a weight is e/T up to a constant of its target, so both follow
    from the weights; those too small for their type count as its smallest.

    Args:
        graph: The edges the weights belong to, in their order.
        weights: [edges, heads], adding up to one over each target's edges.
    """
    target = graph.dst.long()
    degree = graph.by_target.pointer.diff().to(weights.dtype)

    def total(values: Tensor) -> Tensor:
        rows = values.new_zeros(graph.num_dst, values.size(-1))
        return rows.index_add(0, target, values)

    counted = (degree > 1).to(weights.dtype).unsqueeze(-1)
    edges = degree.clamp(min=2).unsqueeze(-1)
    logit = weights.clamp(min=torch.finfo(weights.dtype).tiny).log()
    centred = logit - (total(logit) / edges).index_select(0, target)
    spread = (total(centred.square()) / edges).sqrt()
    entropy = -total(weights * logit) / edges.log()
    size = counted.sum() * weights.size(-1)
    return (spread * counted).sum() / size, (entropy * counted).sum() / size
