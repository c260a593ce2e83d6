"""What a model is called with: the features and edges of a dataset on the device.

A typed graph becomes one graph of a single type. The nodes of the target type come
first, then types by their distance from it, and the edges of all types are put
together. The last layer is then computed for the target type alone, the one before it
for the types that have edges to it as well, and so on: what no target node can see is
left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import torch
from torch import Tensor
from torch_geometric.data import HeteroData

from tempergat.base import UserError
from tempergat.data import ColumnScale, Dataset, density, normalize_rows, to_dense
from tempergat.nn import BACKBONES, METHODS, Features, NodeType, TypedFeatures
from tempergat.ops import Graph, SparseFeatures
from tempergat.training.runs.user_modules import (
    BuildModule,
    build_user_module,
    taken_edge_inputs,
)
from tempergat.training.settings.config import RunConfig

# What a model is called with besides the edges.
Inputs = Features | TypedFeatures
Edges = Graph | tuple[Graph, ...]
# Features with a smaller share of non-zeros are trained on as sparse, whatever their
# layout in the dataset. It saves time, in dropout above all.
_SPARSE_DENSITY = 0.2


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


def features_of(dataset: Dataset, config: RunConfig, device: torch.device) -> Inputs:
    """The features of all nodes, scaled or normalised if the settings say so.

    They are sparse where that is faster, and always dense for a user's own module.
    """
    facts = (config, device, dataset.scaling)
    if dataset.target is None:
        return prepared_features(dataset.data.x, *facts)
    return typed_inputs(
        dataset.data,
        dataset.target,
        lambda x, node_type: prepared_features(x, *facts, node_type),
    )


def row_transform(
    config: RunConfig,
    scaling: Mapping[str, ColumnScale],
    device: torch.device,
    node_type: str = "",
) -> Callable[[Tensor], Tensor] | None:
    """What the settings do to the features of each node; None for nothing.

    Args:
        scaling: That of the training graph, as of `Dataset`.
        node_type: The type of the nodes in a typed graph.
    """
    if config.normalize_features:
        return normalize_rows
    scale = scaling.get(f"{node_type}.x")
    return scale.on(device) if config.scale_features and scale is not None else None


def prepared_features(
    x: Tensor,
    config: RunConfig,
    device: torch.device,
    scaling: Mapping[str, ColumnScale],
    node_type: str = "",
) -> Features:
    """Features as `row_transform` makes them, in the faster layout, on the device."""
    transform = row_transform(config, scaling, x.device, node_type)
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
        whole=BACKBONES[METHODS[config.method].backbone].uses_degrees,
    )


def edge_inputs_of(
    dataset: Dataset, config: RunConfig, device: torch.device
) -> dict[str, Tensor]:
    """The edge features and weights of a graph that a method takes, by argument.

    Features are scaled if the settings say so.

    Attention methods take features as ``edge_attr``, and weights as ``edge_weight`` if
    the settings say so; gcn takes weights. A user's own module gets both.

    Raises:
        UserError: A weight is negative.
    """
    edge_inputs = {}
    if dataset.edge_feature_names:
        edge_inputs["edge_attr"] = scaled_edges(
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
        edge_inputs["edge_weight"] = weight.to(device)
    if config.source_hash is not None:
        return edge_inputs
    taken = edge_arguments(config)
    return {name: value for name, value in edge_inputs.items() if name in taken}


def scaled_edges(
    edge_attr: Tensor, config: RunConfig, scaling: Mapping[str, ColumnScale]
) -> Tensor:
    """Edge features in float32, scaled if the settings say so."""
    scale = scaling.get(".edge_attr") if config.scale_features else None
    edge_attr = edge_attr.float()
    return edge_attr if scale is None else scale.on(edge_attr.device)(edge_attr)


def edge_arguments(config: RunConfig) -> tuple[str, ...]:
    """Which of ``edge_attr`` and ``edge_weight`` a built-in method takes."""
    backbone = BACKBONES[METHODS[config.method].backbone]
    if backbone.has_attention:
        return ("edge_attr", "edge_weight") if config.edge_weight else ("edge_attr",)
    return ("edge_weight",) if backbone.uses_degrees else ()


def edge_dim_of(config: RunConfig, names: Sequence[str]) -> int | None:
    """Features per edge that a built-in method takes, of those with these names."""
    is_taken = names and "edge_attr" in edge_arguments(config)
    return len(names) if is_taken else None


def notes_on_unused_edges(
    dataset: Dataset,
    configs: Sequence[RunConfig],
    builds: Mapping[str, BuildModule] | None = None,
) -> tuple[str, ...]:
    """A sentence for edge features and for weights that some methods cannot use.

    Args:
        builds: For each of the user's own methods, the callable that builds it.

    Raises:
        UserError: A user's module cannot be built.
    """
    subjects = {}
    if dataset.edge_feature_names:
        names = ", ".join(dataset.edge_feature_names)
        subjects["edge_attr"] = f"The edge features ({names}) are"
    if dataset.edge_weight_name is not None:
        subjects["edge_weight"] = f"The edge weight ({dataset.edge_weight_name}) is"
    if not subjects:
        return ()
    taken = {
        config.method: _taken(dataset, config, (builds or {}).get(config.method))
        for config in configs
    }
    notes = []
    for argument, subject in subjects.items():
        without = [
            method for method, arguments in taken.items() if argument not in arguments
        ]
        if without:
            notes.append(f"{subject} not used by {', '.join(without)}.")
    return tuple(notes)


def _taken(
    dataset: Dataset, config: RunConfig, build: BuildModule | None
) -> tuple[str, ...]:
    if build is None:
        return edge_arguments(config)
    sizes = (int(dataset.data.x.size(1)), dataset.predicted.width)
    module = build_user_module(build, config.method, *sizes, seed=0)
    nothing = torch.empty(0)
    return tuple(
        taken_edge_inputs(module, {"edge_attr": nothing, "edge_weight": nothing})
    )


def node_types_of(data: HeteroData, target: str) -> tuple[NodeType, ...]:
    """The node types: the one to classify, then by their distance from it."""
    distance = _distances(data, target)
    names = sorted(data.node_types, key=lambda kind: distance[kind])
    features = [data[name].get("x") for name in names]
    return tuple(
        NodeType(name, int(data[name].num_nodes), 0 if x is None else int(x.size(1)))
        for name, x in zip(names, features, strict=True)
    )


def typed_inputs(
    data: HeteroData, target: str, prepare: Callable[[Tensor, str], Features]
) -> TypedFeatures:
    """All nodes of a typed graph, for `TypedNodeClassifier`.

    Args:
        prepare: Called with the features of each type that has some, and the type.
    """
    kinds = node_types_of(data, target)
    inputs = (
        prepare(data[kind.name].x, kind.name) if kind.num_features else None
        for kind in kinds
    )
    return TypedFeatures(tuple(inputs), kinds[0].num_nodes)


def union_graphs(
    data: HeteroData,
    target: str,
    num_layers: int,
    device: torch.device,
    *,
    whole: bool = False,
) -> tuple[Graph, ...]:
    """The graph of each layer, the first layer's first.

    Args:
        whole: Whether the first layer has the edges to all nodes. Graph convolution
            takes the degrees of all nodes from it.
    """
    distance = _distances(data, target)
    kinds = node_types_of(data, target)
    made: dict[int, Graph] = {}
    graphs = []
    for after in range(num_layers - 1, -1, -1):
        targets = [k.num_nodes for k in kinds if distance[k.name] <= after]
        sources = [k.num_nodes for k in kinds if distance[k.name] <= after + 1]
        if after == num_layers - 1:
            # The first layer is called with all nodes.
            sources = [kind.num_nodes for kind in kinds]
            targets = sources if whole else targets
        count = len(targets)
        if count not in made or made[count].num_src != sum(sources):
            ends = frozenset(kind.name for kind in kinds[:count])
            edges = union_edges(data, target, ends)
            made[count] = Graph(edges.to(device), (sum(sources), sum(targets)))
        graphs.append(made[count])
    return tuple(graphs)


def union_edges(
    data: HeteroData, target: str, ends: Collection[str] | None = None
) -> Tensor:
    """The edges of all types between all nodes, [2, E].

    Args:
        ends: The node types whose incoming edges are taken; None for all.
    """
    start, offsets = 0, {}
    for kind in node_types_of(data, target):
        offsets[kind.name] = start
        start += kind.num_nodes
    dtype = torch.int32 if start < 2**31 else torch.int64
    taken = [kind for kind in data.edge_types if ends is None or kind[2] in ends]
    count = sum(int(data[kind].edge_index.size(1)) for kind in taken)
    # Written in place: the edges are the largest thing in memory here.
    edges, done = torch.empty(2, count, dtype=dtype), 0
    for edge_type in taken:
        source, _, end = edge_type
        given = data[edge_type].edge_index.cpu()
        part = edges[:, done : done + given.size(1)]
        torch.add(given[0].to(dtype), offsets[source], out=part[0])
        torch.add(given[1].to(dtype), offsets[end], out=part[1])
        done += given.size(1)
    return edges


def _distances(data: HeteroData, target: str) -> dict[str, int]:
    """How many edges each node type is away from the target, against their direction.

    A type from which no edges lead to the target is farther away than all others.
    """
    distance = {target: 0}
    for step in range(1, len(data.node_types)):
        reached = set(distance)
        for source, _, end in data.edge_types:
            if end in reached:
                distance.setdefault(source, step)
    return {kind: distance.get(kind, len(data.node_types)) for kind in data.node_types}
