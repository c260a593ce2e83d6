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
from tempergat.comparison.explorer.layers import (
    layer_records,
    pack_integers,
    slots_of,
    why_not_exact,
)
from tempergat.comparison.explorer.neighbourhood import (
    class_names,
    known_labels,
    with_labels,
)
from tempergat.comparison.explorer.sample import NodeSample, sample_nodes
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
class ModelRecord:
    """What a page shows.

    Attributes:
        values: For the page's script.
        dataset: The graph.
        method: The method.
        num_nodes: Nodes of the graph.
        sample: The nodes of the page.
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
    sample: NodeSample
    right: int
    labelled: int
    test: tuple[int, int] | None
    why_not_exact: str | None
    is_training_graph: bool


def record(model: TrainedModel, graph: GraphInput | None = None) -> ModelRecord:
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
    known = labels >= 0
    wrong = known & (labels != predicted)
    edge_attr = None
    if any(getattr(conv, "edge_dim", None) is not None for conv in module.convs):
        edge_attr = scaled_edges(data.edge_attr, model.config, dataset.scaling)
    reason = why_not_exact(module, edge_attr is not None)
    edges = data.edge_index.long()
    sizes = _sizes(module, exact=reason is None)
    sample = sample_nodes(edges, wrong, len(module.convs), **sizes)
    # In the numbers of the page, whose nodes are ascending.
    own_edges = torch.searchsorted(sample.nodes, edges[:, sample.edges].contiguous())

    cpu_module, cpu = copy.deepcopy(module).cpu(), torch.device("cpu")
    transform = row_transform(model.config, dataset.scaling, cpu)
    features = NodeFeatures(data.x, cpu, transform)
    if reason is None:
        of_page = Data(x=features.rows(sample.nodes), edge_index=own_edges)
        _, values = model_values(cpu_module, of_page)
    else:
        # What is not computed in the page may depend on the whole graph.
        every = torch.arange(predicted.size(0))
        whole = Data(x=features.rows(every), edge_index=edges)
        if edge_attr is not None:
            whole.edge_attr = edge_attr
        _, of_graph = model_values(cpu_module, whole)
        values = [_values_in_page(layer, sample) for layer in of_graph]
    attention = values[0].attention
    assert isinstance(attention.used, Tensor)
    self_loops = attention.self_loops is not None
    slots = slots_of(own_edges, attention.used, sample.has_edges, self_loops)
    layers = layer_records(cpu_module, values, slots, reason is None)
    is_training_graph = model.run.fingerprint == dataset.fingerprint
    parts = _parts(data, is_training_graph)
    at = sample.nodes
    names = dataset.node_ids
    page: dict[str, Any] = {
        "classes": list(classes),
        "names": None if names is None else [names[n] for n in at.tolist()],
        "numbers": pack_integers(at.numpy()),
        "labels": pack_integers(labels[at].numpy()),
        "predicted": pack_integers(predicted[at].numpy()),
        "parts": pack_integers(parts[at.numpy()]),
        "shown": pack_integers(sample.shown.numpy().astype(np.uint8)),
        "pointer": pack_integers(slots.pointer),
        "source": pack_integers(slots.source),
        "exact": reason is None,
        "features": _feature_names(dataset, layers),
        "layers": layers,
    }
    in_test = torch.from_numpy(parts == 1 + _PARTS.index("test")) & known
    in_test_right = int((in_test & ~wrong).sum())
    return ModelRecord(
        page,
        dataset,
        model.config.method,
        predicted.size(0),
        sample,
        right=int((known & ~wrong).sum()),
        labelled=int(known.sum()),
        test=(in_test_right, int(in_test.sum())) if in_test.any() else None,
        why_not_exact=reason,
        is_training_graph=is_training_graph,
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
    if model.config.edge_weight:
        raise UserError(
            f"{method} was trained with edge weights, which the explorer does not "
            "show; tempergat.attention gives the weighted coefficients"
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


def _sizes(module: NodeClassifier, exact: bool) -> dict[str, float]:
    """Characters of the page that a node and an edge take, and that there may be."""
    first, *later = cast(list[AttentionLayer], list(module.convs))
    if exact:
        arrays = 1 + (first.skip_map() is not None) + (first.gate is not None)
        weights = sum(p.numel() for layer in later for p in layer.parameters())
        heads = first.heads
    else:
        arrays = sum(layer.gate is not None for layer in (first, *later))
        weights = 0
        heads = sum(layer.heads for layer in (first, *later))
    width = first.heads * first.out_channels
    return {
        "node_size": _CHARACTERS * (width * arrays + 6),
        "edge_size": _CHARACTERS * (heads + 1),
        "most": max(MOST_CHARACTERS - _CHARACTERS * weights, _LEAST_CHARACTERS),
    }


def _values_in_page(values: LayerValues, sample: NodeSample) -> LayerValues:
    """What a layer computes on the whole graph, for the nodes of the page."""
    attention = values.attention
    assert isinstance(attention.weights, Tensor)
    assert isinstance(attention.used, Tensor)
    loops = attention.self_loops
    assert loops is None or isinstance(loops, Tensor)
    attention = replace(
        attention,
        weights=attention.weights[sample.edges],
        used=attention.used[sample.edges],
        self_loops=None if loops is None else loops[sample.nodes],
    )
    gate = None if values.gate is None else values.gate[sample.nodes]
    return LayerValues(attention, values.features[sample.nodes], gate, None)


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
