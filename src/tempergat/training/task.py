"""A dataset prepared for training: checked, and moved to the device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from tempergat.base import UserError
from tempergat.data import (
    DEFAULT_SPLIT,
    DEFAULT_SPLIT_SEED,
    ColumnScale,
    Dataset,
    density,
    make_split,
    normalize_rows,
    to_dense,
)
from tempergat.nn import BACKBONES, METHODS, Features, NodeType, TypedFeatures
from tempergat.ops import Graph, SparseFeatures
from tempergat.training.evaluate import (
    RANKING_METRICS,
    balanced_weights,
    has_several_classes,
)
from tempergat.training.settings.config import RunConfig
from tempergat.training.settings.recipes import metric_of_run
from tempergat.training.typed.union import node_types_of, typed_inputs, union_graphs

SPLITS = ("train", "val", "test")
_SPLIT_WORDS = {"train": "training", "val": "validation", "test": "test"}
# What a model is called with besides the edges.
Inputs = Features | TypedFeatures
Edges = Graph | tuple[Graph, ...]
# Features with a smaller share of non-zeros are trained on as sparse, whatever their
# layout in the dataset. It saves time, in dropout above all.
_SPARSE_DENSITY = 0.2


@dataclass(frozen=True, kw_only=True)
class LearningTask:
    """What full-batch and sampled training both read.

    Attributes:
        nodes: The nodes of each split; on the CPU for sampled training.
        labels: The classes of the nodes of each split, on the device.
        in_channels: Features per node; those of the shared space of a typed graph.
        num_classes: Number of classes.
        metric: The metric of the scores.
        class_weights: The weight of each class in the loss; None for equal weights.
        device: Where models are trained.
        edge_inputs: Edge features and weights that the method takes, by the name of its
            argument; all there are for a user's own module.
        node_types: The node types of a typed graph, the one to classify first; its
            nodes are those that `nodes` and the class scores are about.
    """

    nodes: Mapping[str, Tensor]
    labels: Mapping[str, Tensor]
    in_channels: int
    num_classes: int
    metric: str
    class_weights: Tensor | None
    device: torch.device
    edge_inputs: dict[str, Tensor] = field(default_factory=dict)
    node_types: tuple[NodeType, ...] | None = None

    @property
    def edge_dim(self) -> int | None:
        """Features per edge; None where the method takes none."""
        edge_attr = self.edge_inputs.get("edge_attr")
        return None if edge_attr is None else edge_attr.size(1)


@dataclass(frozen=True, kw_only=True)
class Task(LearningTask):
    """What every epoch reads.

    Attributes:
        x: Features of all nodes; dense for a user's own module, and by type for a
            typed graph.
        graph: The edges, sorted; for a typed graph those of each layer.
        edge_index: The edges as a plain tensor; for a user's own module only.
    """

    x: Inputs
    graph: Edges
    edge_index: Tensor | None


class Targets(NamedTuple):
    """What is learned; attributes as of `Task`, on the CPU."""

    nodes: dict[str, Tensor]
    labels: dict[str, Tensor]
    metric: str
    class_weights: Tensor | None


def task_of(dataset: Dataset, config: RunConfig, device: torch.device) -> Task:
    """Prepares a dataset for runs with these settings.

    Raises:
        UserError: Full-batch training on one type of nodes is not possible with the
            dataset or the settings, or a part of the split has no labelled nodes, or
            only one class where the metric needs two.
    """
    refuse_other_training(dataset, config)
    x = features_of(dataset, config, device)
    nodes, labels, metric, class_weights = targets_of(dataset, config)
    if class_weights is not None:
        class_weights = class_weights.to(device)
    edge_index = None
    if config.source_hash is not None:
        edge_index = dataset.data.edge_index.long().to(device)
    return Task(
        x=x,
        graph=graph_of(dataset, config, device),
        edge_index=edge_index,
        nodes={split: found.to(device) for split, found in nodes.items()},
        labels={split: found.to(device) for split, found in labels.items()},
        in_channels=in_channels_of(dataset, config),
        num_classes=dataset.num_classes,
        metric=metric,
        class_weights=class_weights,
        device=device,
        edge_inputs=edge_inputs_of(dataset, config, device),
        node_types=types_of(dataset),
    )


def types_of(dataset: Dataset) -> tuple[NodeType, ...] | None:
    """The node types of a typed graph, the one to classify first; None without."""
    if dataset.target is None:
        return None
    return node_types_of(dataset.data, dataset.target)


def in_channels_of(dataset: Dataset, config: RunConfig) -> int:
    """Features per node that the layers get; those of the shared space if typed."""
    if dataset.is_heterogeneous:
        return config.shared_channels or config.hidden_channels
    return int(dataset.data.x.size(1))


def targets_of(dataset: Dataset, config: RunConfig) -> Targets:
    """The nodes and classes of each split, and how predictions are judged.

    Raises:
        UserError: A part of the split has no labelled nodes, or only one class where
            the metric needs two.
    """
    nodes, labels = _splits(dataset)
    metric = metric_of_run(config, dataset)
    if metric in RANKING_METRICS:
        _require_two_classes(dataset, metric, labels)
    class_weights = None
    if config.class_weights == "balanced":
        class_weights = balanced_weights(labels["train"], dataset.num_classes)
    return Targets(nodes, labels, metric, class_weights)


def refuse_other_training(dataset: Dataset, config: RunConfig) -> None:
    """Refuses a graph that these settings cannot train on.

    Raises:
        UserError: The graph has no features, or node types with a user's own module
            or sampled training.
    """
    _refuse_graph(dataset)
    if config.source_hash is not None:
        refuse_typed(dataset, f"{config.method} is your own module, which")


def refuse_untrainable(dataset: Dataset) -> None:
    """Refuses a graph that no settings can train on, with the words of training.

    Raises:
        UserError: The graph has no features, no nodes in a part of its split, or
            training nodes of one class only.
    """
    _refuse_graph(dataset)
    _splits(dataset)


def refuse_typed(dataset: Dataset, what: str) -> None:
    """Refuses a typed graph where only graphs of one type can be used.

    Args:
        dataset: The graph.
        what: What takes graphs of one type only, in words.

    Raises:
        UserError: The graph has node types.
    """
    if dataset.is_heterogeneous:
        raise UserError(
            f"{dataset.name} is a typed graph (HeteroData), and {what} takes graphs "
            "with one type of nodes and edges; if all node types have the same number "
            "of features, give data.to_homogeneous()"
        )


def _refuse_graph(dataset: Dataset) -> None:
    if dataset.is_heterogeneous:
        # Types without features get learned vectors.
        return
    if getattr(dataset.data, "x", None) is None:
        raise UserError(
            f"{dataset.name} has no node features; add some, or make them from the "
            "edges with --make-features degree (in Python: "
            'ReadOptions(make_features="degree"))'
        )
    if dataset.data.x.size(1) == 0:
        raise UserError(f"{dataset.name} has 0 features per node; give it some")


def features_of(dataset: Dataset, config: RunConfig, device: torch.device) -> Inputs:
    """The features of all nodes, scaled or normalised if the settings say so.

    They are sparse where that is faster, and always dense for a user's own module.
    """

    def prepare(x: Tensor, node_type: str = "") -> Features:
        scale = dataset.scaling.get(f"{node_type}.x")
        return prepared_features(x, config, device, scale)

    if dataset.target is None:
        return prepare(dataset.data.x)
    return typed_inputs(dataset.data, dataset.target, prepare)


def row_transform(
    config: RunConfig, scale: ColumnScale | None, device: torch.device
) -> Callable[[Tensor], Tensor] | None:
    """What the settings do to the features of each node; None for nothing.

    Args:
        config: The settings.
        scale: How the columns are scaled; None where they are used as given.
        device: Where the features are.
    """
    if config.normalize_features:
        return normalize_rows
    if config.scale_features and scale is not None:
        return scale.on(device)
    return None


def prepared_features(
    x: Tensor, config: RunConfig, device: torch.device, scale: ColumnScale | None
) -> Features:
    """Features as `row_transform` makes them, in the faster layout, on the device."""
    transform = row_transform(config, scale, x.device)
    if transform is not None:
        x = transform(x)
    if config.source_hash is not None:
        return to_dense(x).float().to(device)
    if x.layout == torch.strided:
        x = x.float()
        if not are_sparse(x):
            return x.to(device)
        features = SparseFeatures.from_torch(x)
    else:
        elements = (x.crow_indices(), x.col_indices(), x.values().float())
        features = SparseFeatures(*elements, x.size(1))
    return features.to(device)


def are_sparse(x: Tensor) -> bool:
    """Whether built-in methods are trained on these features as sparse ones."""
    return x.layout != torch.strided or density(x) < _SPARSE_DENSITY


def graph_of(dataset: Dataset, config: RunConfig, device: torch.device) -> Edges:
    """The edges, sorted once for all layers and epochs; by layer for a typed graph."""
    if dataset.target is None:
        try:
            return Graph(dataset.data.edge_index.to(device), dataset.data.num_nodes)
        except ValueError as error:
            # Mapped edges are checked when their file changes, not each time.
            raise UserError(f"{dataset.name}: {error}") from error
    return union_graphs(
        dataset.data,
        dataset.target,
        config.num_layers,
        device,
        whole=BACKBONES[METHODS[config.method].backbone].takes_edge_weight,
    )


def edge_inputs_of(
    dataset: Dataset, config: RunConfig, device: torch.device
) -> dict[str, Tensor]:
    """The edge features and weights of a graph that a method takes, by argument.

    Features are scaled if the settings say so.

    Attention methods take features as ``edge_attr``, gcn weights as ``edge_weight``; a
    user's own module gets both.

    Raises:
        UserError: A weight is negative.
    """
    found = {}
    if dataset.edge_feature_names:
        found["edge_attr"] = scaled_edges(
            dataset.data.edge_attr, config, dataset.scaling
        ).to(device)
    if dataset.edge_weight_name is not None:
        weight = dataset.data.edge_weight.float()
        least = float(weight.min()) if weight.numel() else 0.0
        if least < 0.0:
            raise UserError(
                f"the edge weight {dataset.edge_weight_name} of {dataset.name} goes "
                f"down to {least:g}; give weights of 0 or more, or give the column as "
                "an edge feature"
            )
        found["edge_weight"] = weight.to(device)
    if config.source_hash is not None:
        return found
    taken = edge_arguments(config.method)
    return {name: value for name, value in found.items() if name in taken}


def scaled_edges(
    edge_attr: Tensor, config: RunConfig, scaling: Mapping[str, ColumnScale]
) -> Tensor:
    """Edge features in float32, scaled if the settings say so."""
    scale = scaling.get(".edge_attr") if config.scale_features else None
    edge_attr = edge_attr.float()
    return edge_attr if scale is None else scale.on(edge_attr.device)(edge_attr)


def edge_arguments(method: str) -> tuple[str, ...]:
    """Which of ``edge_attr`` and ``edge_weight`` a built-in method takes."""
    backbone = BACKBONES[METHODS[method].backbone]
    if backbone.has_attention:
        return ("edge_attr",)
    return ("edge_weight",) if backbone.takes_edge_weight else ()


def _splits(dataset: Dataset) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    store = dataset.store
    y = store.y
    nodes = {}
    for split in SPLITS:
        mask = store[f"{split}_mask"] & (y >= 0)
        nodes[split] = mask.nonzero().squeeze(1)
        if nodes[split].numel() == 0:
            raise UserError(
                f"{dataset.name} has no labelled {_SPLIT_WORDS[split]} nodes; "
                + _remedy_for_empty_part(y)
            )
    labels = {split: y[found] for split, found in nodes.items()}
    seen = labels["train"].unique()
    if dataset.num_classes < 2 or seen.numel() < 2:
        raise UserError(
            f"all {labels['train'].numel()} training nodes of {dataset.name} are of "
            f"class {int(seen[0])}; a classifier needs at least two classes"
        )
    return nodes, labels


def _require_two_classes(
    dataset: Dataset, metric: str, labels: Mapping[str, Tensor]
) -> None:
    for split, found in labels.items():
        if not has_several_classes(found):
            raise UserError(
                f"{metric} compares classes, but all {found.numel()} "
                f"{_SPLIT_WORDS[split]} nodes of {dataset.name} are of class "
                f"{int(found[0])}; choose another metric, like macro_f1, or another "
                "split"
            )


def _remedy_for_empty_part(y: Tensor) -> str:
    labelled = int((y >= 0).sum())
    made = make_split(y.cpu().numpy(), DEFAULT_SPLIT, DEFAULT_SPLIT_SEED)
    if all(mask.any() for mask in made.values()):
        return (
            f"make a split of its {labelled} labelled nodes with --split "
            f"{DEFAULT_SPLIT} (split= in Python)"
        )
    return (
        f"its {labelled} labelled nodes are too few for --split {DEFAULT_SPLIT}, so "
        "label more"
    )
