"""A node, its neighbours, and the attention that it pays to each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from torch_geometric.data import Data

from tempergat.base import UserError, counted
from tempergat.data import Dataset
from tempergat.nn import LayerAttention, run_with_attention
from tempergat.training import TrainedModel


@dataclass(frozen=True)
class ShownNode:
    """A node as a picture shows it.

    Attributes:
        name: Its id or number.
        label: Its class; None if it is not known.
        predicted: The class that the model gives it; None if it gives none.
        weight: The attention weight of its edge.
    """

    name: str
    label: int | None
    predicted: int | None
    weight: float

    @property
    def is_right(self) -> bool | None:
        """Whether the prediction is right; None without a label or a prediction."""
        if self.label is None or self.predicted is None:
            return None
        return self.label == self.predicted


@dataclass(frozen=True)
class Neighbourhood:
    """A node with everything that it pays attention to in one layer.

    Attributes:
        node: The node; its weight is that of its added self-loop, 0 without one.
        neighbours: The sources of its edges, the strongest first.
        classes: The name of each class.
        layer: The layer in words.
    """

    node: ShownNode
    neighbours: tuple[ShownNode, ...]
    classes: tuple[str, ...]
    layer: str

    def class_name(self, number: int) -> str:
        """The name of a class; its number where a label has no name."""
        return self.classes[number] if number < len(self.classes) else str(number)


def neighbourhood_of(
    model: nn.Module, graph: Any, node: int | str, layer: int, head: int | None
) -> Neighbourhood:
    """The neighbourhood of a node in a graph of one type.

    Args:
        model: A model that `tempergat.attention` takes.
        graph: A graph that it takes, of one node type.
        node: The number of the node, or its id in the user's table.
        layer: The layer's place among the layers, from 0; -1 is the last.
        head: The head, from 0; None for the mean over heads.

    Raises:
        UserError: There is no such node, layer or head, the graph has node types, or
            the attention weights are not finite numbers.
    """
    graph = with_labels(model, graph)
    names = graph.node_ids if isinstance(graph, Dataset) else None
    data = graph.data if isinstance(graph, Dataset) else graph
    if not isinstance(data, Data):
        raise UserError(
            "draw_node draws graphs of one node type; tempergat.attention gives the "
            "attention weights of a typed graph by edge type"
        )
    output, layers = run_with_attention(model, graph)
    place = _index_of("layer", layer, len(layers))
    attention = layers[place]
    edges, weights, loops = _one_head(attention, head)
    scores = output if isinstance(output, Tensor) else output[0]
    predicted = scores.argmax(dim=-1).tolist()
    number = node_number(node, names, scores.size(0))
    classes = class_names(model, graph, scores.size(1))
    labels = known_labels(data, graph, classes)

    def shown(other: int, weight: float) -> ShownNode:
        label = labels[other]
        # The last layers of a batch give no scores to the nodes far from its seeds.
        guess = predicted[other] if other < len(predicted) else None
        name = str(other) if names is None else names[other]
        return ShownNode(name, None if label < 0 else label, guess, weight)

    assert isinstance(attention.used, Tensor)
    assert isinstance(attention.weights, Tensor)
    mine = ((edges[1] == number) & attention.used.cpu()).nonzero().squeeze(1).tolist()
    pairs = sorted(((float(weights[e]), int(edges[0, e])) for e in mine), reverse=True)
    own = 0.0 if loops is None else float(loops[number])
    if not all(math.isfinite(weight) for weight in (own, *(w for w, _ in pairs))):
        raise UserError(
            f"the attention of node {node!r} is not a number; look for NaN or infinity "
            "in the features of its neighbours and in the weights of the model"
        )
    heads = attention.weights.size(1)
    only = 0 if heads == 1 else head
    word = (
        "mean of all heads" if only is None else f"head {only % heads + 1} of {heads}"
    )
    return Neighbourhood(
        shown(number, own),
        tuple(shown(other, weight) for weight, other in pairs),
        classes,
        f"layer {place + 1} of {len(layers)}, {word}",
    )


def node_number(node: int | str, names: Sequence[str] | None, count: int) -> int:
    """The number of a node.

    Raises:
        UserError: There is no such node.
    """
    if names is not None and str(node) in names:
        return names.index(str(node))
    if isinstance(node, int) and 0 <= node < count:
        return node
    hint = f"nodes are numbered from 0 to {count - 1}"
    if names is not None:
        hint = f"ids are like {names[0]}"
    raise UserError(f"there is no node {node!r} in {counted(count, 'node')}; {hint}")


def class_names(model: nn.Module, graph: Any, count: int) -> tuple[str, ...]:
    """The name of each class: its word in the user's table, or its number."""
    words = model.class_names if isinstance(model, TrainedModel) else None
    if words is None and isinstance(graph, Dataset):
        words = graph.predicted.names
    return tuple(map(str, range(count))) if words is None else words


def with_labels(model: nn.Module, graph: Any) -> Any:
    """A graph that a trained model reads, with its labels if it has any."""
    if isinstance(graph, Data | Dataset) or not isinstance(model, TrainedModel):
        return graph
    try:
        return model.read_graph(graph, labelled=True)
    except UserError:
        # Without labels, or one that the model cannot use, which is then said.
        return model.read_graph(graph)


def known_labels(data: Data, graph: Any, classes: Sequence[str]) -> list[int]:
    """The class of every node as the model numbers them; -1 where it is not known."""
    y = data.get("y")
    if not isinstance(y, Tensor) or y.dim() != 1 or y.is_floating_point():
        return [-1] * int(data.num_nodes or 0)
    names = graph.predicted.names if isinstance(graph, Dataset) else None
    labels: list[int] = y.tolist()
    if names is None or tuple(names) == tuple(classes):
        return labels
    # The words of a table may come in another order than in training.
    places = {word: place for place, word in enumerate(classes)}
    return [places.get(names[number], -1) if number >= 0 else -1 for number in labels]


def _one_head(
    attention: LayerAttention, head: int | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Edges, their attention weights and those of self-loops: of a head or the mean."""
    edges, weights = attention.edge_index, attention.weights
    loops = attention.self_loops
    assert isinstance(edges, Tensor)
    assert isinstance(weights, Tensor)
    assert loops is None or isinstance(loops, Tensor)
    edges, weights = edges.cpu(), weights.cpu()
    if head is None:
        return edges, weights.mean(dim=1), None if loops is None else loops.mean(dim=1)
    place = _index_of("head", head, weights.size(1))
    return edges, weights[:, place], None if loops is None else loops[:, place]


def _index_of(what: str, number: int, count: int) -> int:
    if not -count <= number < count:
        raise UserError(
            f"there is no {what} {number}: the model has {counted(count, what)}, "
            f"numbered from 0 to {count - 1}"
        )
    return number % count
