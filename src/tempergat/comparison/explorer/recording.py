"""What a trained model does on a graph, as the values that the page holds."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from tempergat.base import UserError
from tempergat.comparison.explorer import packing
from tempergat.comparison.explorer.choosing import Choice, Costs, choose_nodes
from tempergat.comparison.explorer.layer_records import (
    layer_records,
    slots_of,
    why_not_exact,
)
from tempergat.comparison.explorer.neighbourhood import (
    class_names,
    known_labels,
    with_labels,
)
from tempergat.data import CATALOG, Dataset, GraphInput
from tempergat.nn import (
    BACKBONES,
    METHODS,
    AttentionLayer,
    LayerValues,
    NodeClassifier,
    model_values,
)
from tempergat.sampling import NodeFeatures
from tempergat.training import TrainedModel, row_transform, scaled_edges

# Two bytes of an array are this many characters of base64.
_CHARACTERS = 8 / 3
# So that the whole page stays under 3 MB.
MOST_CHARACTERS = 2_300_000
# Nodes and edges get as much even beside the weights of a very wide model.
_LEAST_CHARACTERS = 300_000
_PARTS = ("train", "val", "test")


@dataclass(frozen=True)
class Recorded:
    """What a page shows.

    Attributes:
        values: For the page's script.
        dataset: The graph.
        method: The method.
        num_nodes: Nodes of the graph.
        choice: The nodes of the page.
        right: How many labelled nodes are classified rightly.
        labelled: How many nodes have labels.
        test: The same two numbers for the test nodes; None if they are not known.
        why_not_exact: Why the page does not compute predictions; None if it does.
        is_training_graph: Whether the model was trained on this very graph and split.
    """

    values: dict[str, Any]
    dataset: Dataset
    method: str
    num_nodes: int
    choice: Choice
    right: int
    labelled: int
    test: tuple[int, int] | None
    why_not_exact: str | None
    is_training_graph: bool


def record(model: TrainedModel, graph: GraphInput | None = None) -> Recorded:
    """Runs a model on a graph and keeps what the page needs.

    Args:
        model: The model.
        graph: The graph, with or without labels; None for that of the training.

    Raises:
        UserError: The method has no attention, or the graph cannot be used.
    """
    _refuse_other_methods(model)
    dataset = _read(model, graph)
    data, module = dataset.data, model.module
    assert isinstance(module, NodeClassifier)
    predicted = model.predict(replace(dataset, notes=()))
    classes = class_names(model, dataset, model.num_classes)
    labels = torch.tensor(known_labels(data, dataset, classes))
    wrong = (labels >= 0) & (labels != predicted)
    edge_attr = None
    if _uses_edge_features(module):
        edge_attr = scaled_edges(data.edge_attr, model.config, dataset.scaling)
    reason = why_not_exact(module, edge_attr is not None)
    edges = data.edge_index.long()
    hops = len(module.convs)
    costs = _costs(module, exact=reason is None)
    choice = choose_nodes(edges, predicted.size(0), hops, wrong, costs)

    cpu = _on_cpu(module)
    cpu_device = torch.device("cpu")
    transform = row_transform(model.config, dataset.scaling.get(".x"), cpu_device)
    features = NodeFeatures(data.x, cpu_device, transform)
    if reason is None:
        own_edges = _renumbered(edges[:, choice.edges], choice.nodes)
        graph_of_page = Data(x=features.rows(choice.nodes), edge_index=own_edges)
        _, values = model_values(cpu, graph_of_page)
    else:
        # What is not computed in the page may depend on the whole graph.
        every = torch.arange(predicted.size(0))
        whole = Data(x=features.rows(every), edge_index=edges)
        if edge_attr is not None:
            whole.edge_attr = edge_attr
        values = [_cut(found, choice) for found in model_values(cpu, whole)[1]]
        own_edges = _renumbered(edges[:, choice.edges], choice.nodes)
    seen = values[0].attention
    assert isinstance(seen.used, Tensor)
    slots = slots_of(
        own_edges, seen.used, choice.has_edges, seen.self_loops is not None
    )
    is_known = model.run.fingerprint == dataset.fingerprint
    parts = _parts(data, is_known)
    layers = layer_records(cpu, values, slots, reason is None)
    at = choice.nodes
    names = dataset.node_ids
    page: dict[str, Any] = {
        "classes": list(classes),
        "names": None if names is None else [names[n] for n in at.tolist()],
        "numbers": packing.whole_numbers(at.numpy()),
        "labels": packing.whole_numbers(labels[at].numpy()),
        "predicted": packing.whole_numbers(predicted[at].numpy()),
        "parts": packing.whole_numbers(parts[at.numpy()]),
        "shown": packing.whole_numbers(choice.shown.numpy().astype(np.uint8)),
        "pointer": packing.whole_numbers(slots.pointer),
        "source": packing.whole_numbers(slots.source),
        "exact": reason is None,
        "features": _feature_names(dataset, layers),
        "layers": layers,
    }
    known = labels >= 0
    in_test = torch.from_numpy(parts == 1 + _PARTS.index("test")) & known
    counts = (int((in_test & ~wrong).sum()), int(in_test.sum()))
    return Recorded(
        page,
        dataset,
        model.config.method,
        predicted.size(0),
        choice,
        int((known & ~wrong).sum()),
        int(known.sum()),
        counts if counts[1] else None,
        reason,
        is_known,
    )


def _refuse_other_methods(model: TrainedModel) -> None:
    method = model.config.method
    if model.config.source_hash is not None:
        raise UserError(
            f"{method} is your own module; the explorer shows the built-in methods "
            "with attention, and tempergat.attention and tempergat.draw_node any "
            "module that holds our layers"
        )
    if not BACKBONES[METHODS[method].backbone].has_attention:
        shown = [m for m, f in METHODS.items() if BACKBONES[f.backbone].has_attention]
        raise UserError(
            f"{method} has no attention to show; train one of {', '.join(shown)}"
        )


def _read(model: TrainedModel, graph: GraphInput | None) -> Dataset:
    if graph is None:
        graph = model.run.dataset
        try:
            dataset = with_labels(model, graph)
        except UserError as error:
            if graph in CATALOG or Path(graph).exists():
                raise UserError(
                    f"the model was trained on {graph}, and what has that name here "
                    f"cannot be used: {error}"
                ) from error
            raise UserError(
                "the model was trained on a graph given in Python or as a file (named "
                f"{graph}), and a model does not store where its graph is; add the "
                "path of the graph to the command"
            ) from error
    else:
        dataset = with_labels(model, graph)
    if isinstance(graph, Data | Dataset):
        is_labelled = isinstance(graph, Dataset) or "y" in graph
        dataset = model.read_graph(graph, labelled=is_labelled)
    assert isinstance(dataset, Dataset)
    if dataset.is_heterogeneous:
        raise UserError(
            f"{dataset.name} is a typed graph, and the explorer shows graphs of one "
            "node type; tempergat.attention gives the attention weights by edge type"
        )
    return dataset


def _uses_edge_features(module: NodeClassifier) -> bool:
    return any(getattr(conv, "edge_dim", None) is not None for conv in module.convs)


def _on_cpu(module: NodeClassifier) -> NodeClassifier:
    return copy.deepcopy(module).cpu()


def _costs(module: NodeClassifier, exact: bool) -> Costs:
    """Characters of the page that a node and an edge take, beside the weights."""
    first, *later = cast(list[AttentionLayer], list(module.convs))
    if exact:
        arrays = 1 + (first.res is not None) + (first.gate is not None)
        weights = sum(p.numel() for layer in later for p in layer.parameters())
        heads = first.heads
    else:
        arrays = sum(layer.gate is not None for layer in (first, *later))
        weights = 0
        heads = sum(layer.heads for layer in (first, *later))
    width = first.heads * first.out_channels
    return Costs(
        node=_CHARACTERS * (width * arrays + 6),
        edge=_CHARACTERS * (heads + 1),
        most=max(MOST_CHARACTERS - _CHARACTERS * weights, _LEAST_CHARACTERS),
    )


def _renumbered(edges: Tensor, nodes: Tensor) -> Tensor:
    """Edges in the numbers of the page; its nodes are ascending."""
    return torch.searchsorted(nodes, edges.contiguous())


def _cut(found: LayerValues, choice: Choice) -> LayerValues:
    """What a layer computes on the whole graph, for the nodes of the page."""
    seen = found.attention
    assert isinstance(seen.weights, Tensor)
    assert isinstance(seen.used, Tensor)
    loops = seen.self_loops
    assert loops is None or isinstance(loops, Tensor)
    attention = replace(
        seen,
        weights=seen.weights[choice.edges],
        used=seen.used[choice.edges],
        self_loops=None if loops is None else loops[choice.nodes],
    )
    gate = None if found.gate is None else found.gate[choice.nodes]
    return LayerValues(attention, found.features[choice.nodes], gate, None)


def _parts(data: Any, are_known: bool) -> np.ndarray:
    """1, 2 and 3 for training, validation and test nodes; 0 for others."""
    parts = np.zeros(int(data.num_nodes), dtype=np.uint8)
    if are_known:
        for number, part in enumerate(_PARTS, start=1):
            parts[data[f"{part}_mask"].numpy()] = number
    return parts


def _feature_names(
    dataset: Dataset, layers: list[dict[str, Any]]
) -> dict[int, str] | None:
    """The names of the features that the page mentions, by their number."""
    names = dataset.feature_names
    if names is None:
        return None
    strongest = layers[0].get("strongest", [])
    mentioned = {number for dimension in strongest for number, _ in dimension}
    return {number: names[number] for number in sorted(mentioned)}
