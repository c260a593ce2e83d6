"""How a trained model is called on a graph or on a batch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data, HeteroData

from tempergat.base import UserError
from tempergat.data import Dataset
from tempergat.nn import (
    GraphCall,
    NodeClassifier,
    TypedFeatures,
    caller_edge_ids,
    caller_edges,
    edge_order,
    hidden_features,
)
from tempergat.ops import Graph
from tempergat.training.graphs.inputs import (
    edge_inputs_of,
    features_of,
    graph_of,
    prepared_features,
    row_transform,
    scaled_edges,
    types_of,
    union_edges,
)
from tempergat.training.graphs.layerwise import infer_layerwise
from tempergat.training.graphs.sampled import batch_inputs, parts_of
from tempergat.training.runs.user_modules import (
    call_user_module,
    explain_errors,
    taken_edge_inputs,
)
from tempergat.training.single.metadata import Metadata

# Above, predictions are computed layer by layer, some nodes at a time.
_MOST_NODES_AT_ONCE = 2**20


def logits_of(module: nn.Module, metadata: Metadata, dataset: Dataset) -> Tensor:
    """The class scores of all nodes of a graph.

    Args:
        module: The classifier, or a user's own module.
        metadata: What it knows of its training graph.
        dataset: The graph, read as the training graph was.
    """
    config = metadata.config
    device = next(module.parameters()).device
    is_own = config.source_hash is not None
    is_large = int(dataset.data.num_nodes) > _MOST_NODES_AT_ONCE
    # All nodes at once may need more memory than there is.
    may_not_fit = is_large or config.training == "sampled"
    if may_not_fit and not is_own and not dataset.is_heterogeneous:
        features, topology = parts_of(dataset, config, device)
        edges = _edge_inputs(module, metadata, dataset, torch.device("cpu"))
        assert isinstance(module, NodeClassifier)
        return infer_layerwise(
            module,
            features,
            topology,
            edge_attr=edges.get("edge_attr"),
            edge_weight=edges.get("edge_weight"),
        )
    x = features_of(dataset, config, device)
    edges = _edge_inputs(module, metadata, dataset, device)
    logits: Tensor
    if not is_own:
        logits = module(x, graph_of(dataset, config, device), **edges)
        return logits
    edge_index, classes = (
        dataset.data.edge_index.long().to(device),
        metadata.num_classes,
    )
    assert isinstance(x, Tensor)
    with explain_errors(config.method):
        return call_user_module(config.method, module, x, edge_index, edges, classes)


def embeddings_of(module: nn.Module, metadata: Metadata, dataset: Dataset) -> Tensor:
    """The last hidden features of all nodes of a graph; arguments of `logits_of`.

    Raises:
        UserError: The model is a user's own module, or has one layer.
    """
    if not isinstance(module, NodeClassifier):
        raise UserError(
            f"{metadata.config.method} is your own module, whose hidden features only "
            "you know; call the module itself (model.module)"
        )
    try:
        with hidden_features(module) as parts:
            logits_of(module, metadata, dataset)
    except ValueError as error:
        raise UserError(str(error)) from None
    return torch.cat(parts)


def _edge_inputs(
    module: nn.Module, metadata: Metadata, dataset: Dataset, device: torch.device
) -> dict[str, Tensor]:
    """The edge features and weights that the model was trained with."""
    used = {
        "edge_attr": bool(metadata.edge_feature_names),
        "edge_weight": metadata.edge_weight_name is not None,
    }
    edges = edge_inputs_of(dataset, metadata.config, device)
    edges = {name: value for name, value in edges.items() if used[name]}
    if metadata.config.source_hash is None:
        return edges
    return taken_edge_inputs(module, edges)


def is_sampled_batch(graph: Any) -> bool:
    """Whether a graph is a batch of `NeighborSampler`, which is sorted for layers."""
    return isinstance(graph, Data | HeteroData) and hasattr(
        graph.get("graph"), "for_layers"
    )


def call_on_batch(module: nn.Module, metadata: Metadata, batch: Any) -> GraphCall:
    """The call on a batch of `NeighborSampler`.

    Args:
        module: The classifier.
        metadata: What it knows of its training graph.
        batch: The batch, with features as in the dataset.

    Raises:
        UserError: The batch is typed and the model is not, or the other way round, or
            the model is a user's own module.
    """
    config, types = metadata.config, metadata.types
    if config.source_hash is not None:
        raise UserError(
            f"{config.method} is your own module; call tempergat.attention with the "
            "module itself (model.module) and the batch"
        )
    if isinstance(batch, HeteroData) != (types is not None):
        kinds = {True: "a typed graph", False: "a graph with one type of nodes"}
        raise UserError(
            f"the batch is of {kinds[isinstance(batch, HeteroData)]}, but the model "
            f"was trained on {kinds[types is not None]}; give a batch of such a graph"
        )
    device = next(module.parameters()).device
    graph = batch.graph.to(device)
    x: Any
    kwargs: dict[str, Tensor] = {}
    if types is not None:
        x = _typed_features(batch_inputs(batch, types, device), metadata)
    else:
        scaling = metadata.scales
        x = prepared_features(batch.x, config, device, scaling.get(".x"))
        if metadata.edge_dim is not None:
            edge_attr = scaled_edges(batch.edge_attr, config, scaling)
            kwargs["edge_attr"] = edge_attr.to(device)
        if config.edge_weight:
            kwargs["edge_weight"] = batch.edge_weight.float().to(device)
    return GraphCall(
        module,
        (x, graph),
        kwargs,
        caller_edges(batch),
        caller_edge_ids(batch),
        edge_order(batch),
        graph.rows_of_type,
    )


def call_on_dataset(
    module: nn.Module, metadata: Metadata, dataset: Dataset, given: Any
) -> GraphCall:
    """The call on a whole graph.

    Args:
        module: The classifier, or a user's own module.
        metadata: What it knows of its training graph.
        dataset: The graph, read as the training graph was.
        given: The graph as the caller gave it. Reading a PyG object sorts its edges and
            merges repeated ones.
    """
    config = metadata.config
    device = next(module.parameters()).device
    kwargs = _edge_inputs(module, metadata, dataset, device)
    x = features_of(dataset, config, device)
    data = dataset.data
    is_object = isinstance(given, Data | HeteroData)
    edges: Any = caller_edges(given if is_object else data)
    if dataset.target is None:
        read = data.edge_index.to(device)
        if config.source_hash is not None:
            read = read.long()
        order = _places(data.edge_index, edges) if is_object else None
        return GraphCall(module, (x, read), kwargs, edges, edge_order=order)
    rows, start = {}, 0
    for kind in types_of(dataset) or ():
        rows[kind.name] = torch.arange(start, start + kind.num_nodes)
        start += kind.num_nodes
    # In training a layer has no edges that no target node sees; here it has all.
    union = Graph(union_edges(data, dataset.target).to(device), start)
    places, before = [], 0
    for edge_type, ends in edges.items():
        columns = _places(data[edge_type].edge_index, ends)
        # Reading a typed graph adds no edges.
        assert columns is not None
        places.append(columns + before)
        before += ends.size(1)
    return GraphCall(
        module,
        (x, (union,) * config.num_layers),
        kwargs,
        edges,
        edge_order=torch.cat(places),
        rows_of_type=rows,
    )


def _places(read: Tensor, given: Tensor) -> Tensor | None:
    """Where each edge is first found among those given; None if one is not there."""
    # Keys of int32 ends would overflow.
    read, given = read.cpu().long(), given.cpu().long()
    if torch.equal(read, given):
        return torch.arange(read.size(1))
    bound = 1 + max(int(ends.max(initial=0)) for ends in (read.numpy(), given.numpy()))
    keys, columns = torch.sort(given[0] * bound + given[1], stable=True)
    wanted = read[0] * bound + read[1]
    places = torch.searchsorted(keys, wanted).clamp(max=max(keys.size(0) - 1, 0))
    if not keys.numel() or not torch.equal(keys[places], wanted):
        return None
    return columns[places]


def _typed_features(x: TypedFeatures, metadata: Metadata) -> TypedFeatures:
    scaling, inputs = metadata.scales, []
    for kind, values in zip(metadata.types or (), x.inputs, strict=True):
        if isinstance(values, Tensor) and kind.num_features:
            scale = scaling.get(f"{kind.name}.x")
            transform = row_transform(metadata.config, scale, values.device)
            values = values if transform is None else transform(values)
        inputs.append(values)
    return replace(x, inputs=tuple(inputs))
