"""A classifier that prepares its input as in training, on a graph or on a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data, HeteroData

from tempergat.base import UserError
from tempergat.data import Dataset, to_dense
from tempergat.nn import GraphCall, NodeClassifier, hidden_features
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
from tempergat.training.runs.own_tensors import OwnTensors
from tempergat.training.runs.user_modules import explain_errors, taken_edge_inputs
from tempergat.training.settings.config import RunConfig
from tempergat.training.single.graph_inputs import typed_dataset
from tempergat.training.single.metadata import Metadata

# Above, predictions are computed layer by layer, some nodes at a time.
_MOST_NODES_AT_ONCE = 2**20


class PreparedModule(nn.Module):
    """A classifier that prepares its input as in training.

    Args:
        module: The classifier, or a user's own module.
        metadata: What it knows of its training graph.
    """

    def __init__(self, module: nn.Module, metadata: Metadata) -> None:
        super().__init__()
        self.module = module
        self._metadata = metadata

    @property
    def config(self) -> RunConfig:
        """The settings of the run."""
        return self._metadata.config

    @property
    def _device(self) -> torch.device:
        return next(self.module.parameters()).device

    def forward(
        self,
        x: Tensor | Mapping[str, Tensor],
        edge_index: Any,
        edge_attr: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        """Class scores (logits) of all nodes, [num_nodes, num_classes].

        A model of a typed graph gives those of the target type's nodes. All edges are
        used as given; `predict`, which reads a graph as in training, leaves out those
        that repeat an earlier one.

        Args:
            x: Node features as in the dataset; they are scaled or normalised here if
                the settings of the run say so. For a typed graph by node type, where
                types without features are left out.
            edge_index: The edges; for a typed graph by edge type.
            edge_attr: Edge features, for a model that was trained with them; as in the
                dataset, too.
            edge_weight: Edge weights, likewise.
        """
        if self._metadata.node_types is not None:
            return self._logits(typed_dataset(x, edge_index, self._metadata))
        if not isinstance(x, Tensor):
            raise TypeError("x must be a tensor: the model is for graphs of one type")
        scaling = self._metadata.scaling
        transform = row_transform(self.config, scaling, x.device)
        if transform is not None:
            x = transform(x)
        if edge_attr is not None:
            edge_attr = scaled_edges(edge_attr, self.config, scaling)
        given = {"edge_attr": edge_attr, "edge_weight": edge_weight}
        edges = {name: value for name, value in given.items() if value is not None}
        if self.config.source_hash is not None:
            # The module may work in place.
            x, edge_index = to_dense(x).clone(), edge_index.clone()
            edges = {name: value.clone() for name, value in edges.items()}
        logits: Tensor = self.module(x.float(), edge_index, **edges)
        return logits

    def _logits(self, dataset: Dataset) -> Tensor:
        """The class scores of all nodes of a graph, read as the training graph was."""
        config, module, device = self.config, self.module, self._device
        is_own = config.source_hash is not None
        is_large = int(dataset.data.num_nodes) > _MOST_NODES_AT_ONCE
        # All nodes at once may need more memory than there is.
        may_not_fit = is_large or config.training == "sampled"
        if may_not_fit and not is_own and not dataset.is_heterogeneous:
            assert isinstance(module, NodeClassifier)
            edges = self._edge_inputs(dataset, torch.device("cpu"))
            return infer_layerwise(module, *parts_of(dataset, config, device), **edges)
        x: Any = features_of(dataset, config, device)
        edges = self._edge_inputs(dataset, device)
        if not is_own:
            logits: Tensor = module(x, graph_of(dataset, config, device), **edges)
            return logits
        edge_index = dataset.data.edge_index.long().to(device)
        inputs = (x, edge_index, edges, self._metadata.predicted.width)
        with explain_errors(config.method):
            fresh = x is not dataset.data.x
            return OwnTensors(config.method).call(module, *inputs, x_is_fresh=fresh)

    def _embeddings(self, dataset: Dataset) -> Tensor:
        """The last hidden features of all nodes of a graph.

        Raises:
            UserError: The model is a user's own module, or has one layer.
        """
        if not isinstance(self.module, NodeClassifier):
            raise UserError(
                f"{self.config.method} is your own module, whose hidden features only "
                "you know; call the module itself (model.module)"
            )
        try:
            with hidden_features(self.module) as parts:
                self._logits(dataset)
        except ValueError as error:
            raise UserError(str(error)) from None
        return torch.cat(parts)

    def _edge_inputs(self, dataset: Dataset, device: torch.device) -> dict[str, Any]:
        """The edge features and weights that the model was trained with."""
        used = {
            "edge_attr": bool(self._metadata.edge_feature_names),
            "edge_weight": self._metadata.edge_weight_name is not None,
        }
        edges = edge_inputs_of(dataset, self.config, device)
        edges = {name: value for name, value in edges.items() if used[name]}
        if self.config.source_hash is None:
            return edges
        return taken_edge_inputs(self.module, edges)

    def _call_on_batch(self, batch: Any) -> GraphCall:
        """The call on a batch of `NeighborSampler`, with features as in the dataset.

        Raises:
            UserError: The batch is typed and the model is not, or the other way round,
                or the model is a user's own module.
        """
        config, device = self.config, self._device
        types, scaling = self._metadata.node_types, self._metadata.scaling
        if config.source_hash is not None:
            raise UserError(
                f"{config.method} is your own module; call tempergat.attention with "
                "the module itself (model.module) and the batch"
            )
        if isinstance(batch, HeteroData) != (types is not None):
            kinds = {True: "a typed graph", False: "a graph with one type of nodes"}
            raise UserError(
                f"the batch is of {kinds[isinstance(batch, HeteroData)]}, but the "
                f"model was trained on {kinds[types is not None]}; give a batch of "
                "such a graph"
            )
        graph = batch.graph.to(device)
        x: Any
        kwargs: dict[str, Tensor] = {}
        if types is not None:
            x, scaled = batch_inputs(batch, types, device), []
            for kind, values in zip(types, x.inputs, strict=True):
                transform = row_transform(config, scaling, device, kind.name)
                if transform is not None and kind.num_features:
                    values = transform(values)
                scaled.append(values)
            x = replace(x, inputs=tuple(scaled))
        else:
            x = prepared_features(batch.x, config, device, scaling)
            if self._metadata.edge_dim is not None:
                edge_attr = scaled_edges(batch.edge_attr, config, scaling)
                kwargs["edge_attr"] = edge_attr.to(device)
            if config.edge_weight:
                kwargs["edge_weight"] = batch.edge_weight.float().to(device)
        inputs = (x, graph)
        return GraphCall.on(batch, self.module, inputs, kwargs, graph.rows_of_type)

    def _call_on_dataset(self, dataset: Dataset, given: Any) -> GraphCall:
        """The call on a whole graph, read as the training graph was.

        Args:
            dataset: The graph.
            given: The graph as the caller gave it. Reading a PyG object sorts its edges
                and merges repeated ones.
        """
        config, device, data = self.config, self._device, dataset.data
        kwargs = self._edge_inputs(dataset, device)
        x: Any = features_of(dataset, config, device)
        is_object = isinstance(given, Data | HeteroData)
        source: Any = given if is_object else data
        if dataset.target is None:
            edges = source.edge_index
            read = data.edge_index.to(device)
            if config.source_hash is not None:
                # The module may work in place.
                x, read = x.clone(), read.long().clone()
                kwargs = {name: value.clone() for name, value in kwargs.items()}
            order = _places(data.edge_index, edges) if is_object else None
            return GraphCall(self.module, (x, read), kwargs, edges, edge_order=order)
        edges = source.collect("edge_index", allow_empty=True)
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
            self.module,
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
