"""The methods on typed graphs, by the paper's protocol for H2GB.

The features of every node type go through a linear map of its own into one shared
space; a type without features has a learned vector for each of its nodes. The graph is
then treated as one of a single type: any of the methods runs on it, and a linear
classifier gives the classes of the target type's nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn.resolver import normalization_resolver

from tempergat.nn.build import build_model
from tempergat.nn.methods import Method
from tempergat.nn.models import NodeClassifier, drop_idle_bias
from tempergat.nn.projection import (
    Features,
    as_features,
    drop_features,
    make_projection,
    project,
)
from tempergat.ops import fold_in


@dataclass(frozen=True)
class NodeType:
    """What a model knows of a node type.

    Attributes:
        name: Its name.
        num_nodes: Number of nodes.
        num_features: Features per node; 0 where every node has a learned vector.
    """

    name: str
    num_nodes: int
    num_features: int


@dataclass(frozen=True)
class TypedFeatures:
    """The nodes of a typed graph, or of a batch of one.

    Attributes:
        inputs: For each node type in the order of the model: the features, or for a
            type without features the numbers of its nodes, int64; None for all of
            them.
        num_targets: How many rows of the model's output are wanted. They are those of
            the first nodes in the graph.
        order: The place of each node of the graph after all types are stacked; None
            where the graph has the nodes in that order.
    """

    inputs: tuple[Features | None, ...]
    num_targets: int
    order: Tensor | None = None

    @property
    def device(self) -> torch.device:
        """The device of the tensors; the CPU where no type has any."""
        devices = (values.device for values in self.inputs if values is not None)
        return next(devices, torch.device("cpu"))

    def to(self, device: torch.device | str) -> TypedFeatures:
        """The same nodes on another device."""
        return TypedFeatures(
            tuple(None if x is None else x.to(device) for x in self.inputs),
            self.num_targets,
            None if self.order is None else self.order.to(device),
        )


class EmbeddingTable(nn.Module):
    """A learned vector for each node of a type.

    Args:
        num_nodes: Number of nodes.
        channels: Length of the vectors.

    Attributes:
        sparse: Whether the gradient of some rows is a sparse tensor, which takes the
            time and the memory of those rows alone.
    """

    def __init__(self, num_nodes: int, channels: int) -> None:
        super().__init__()
        # Drawn by `reset_parameters`: a table may have millions of rows.
        self.weight = nn.Parameter(torch.empty(num_nodes, channels))
        self.sparse = False

    def reset_parameters(self) -> None:
        """Draws all vectors from the standard normal distribution."""
        nn.init.normal_(self.weight)

    def forward(self, nodes: Tensor | None) -> Tensor:
        """The vectors of some nodes, or of all."""
        if nodes is None:
            return self.weight
        return functional.embedding(nodes, self.weight, sparse=self.sparse)


class TypedNodeClassifier(NodeClassifier):
    """Maps into a shared space, the layers of a method, and a linear classifier.

    Args:
        method: The method.
        convs: Its layers; the first takes vectors of the shared space and the last
            gives such vectors.
        node_types: The node types; the first is the one to classify.
        hidden_channels: Total width of a hidden layer.
        shared_channels: Width of the shared space.
        out_channels: Number of classes.
        dropout: Dropout rate on the input of every layer and of the classifier.
        act: Activation after every layer.
        norm: Normalisation after every layer.
        jk: Jumping-knowledge mode.
        bias_before_norm: Whether layers that batch norm follows have a bias.
    """

    def __init__(
        self,
        method: Method,
        convs: list[nn.Module],
        node_types: Sequence[NodeType],
        hidden_channels: int,
        shared_channels: int,
        out_channels: int,
        dropout: float,
        act: str | Callable[..., Any] | None,
        norm: str | Callable[..., Any] | None,
        jk: str | None,
        bias_before_norm: bool = True,
    ) -> None:
        sizes = (hidden_channels, shared_channels)
        super().__init__(
            method, convs, *sizes, dropout, act, norm, jk, bias_before_norm
        )
        self.node_types = tuple(node_types)
        self.projections = nn.ModuleList(
            make_projection(kind.num_features, shared_channels, bias=True)
            for kind in node_types
            if kind.num_features
        )
        self.tables = nn.ModuleList(
            EmbeddingTable(kind.num_nodes, shared_channels)
            for kind in node_types
            if not kind.num_features
        )
        self.out_norm = normalization_resolver(norm, shared_channels)
        if not bias_before_norm:
            drop_idle_bias(self.lin or self.convs[-1], self.out_norm)
        self.classifier = nn.Linear(shared_channels, out_channels)

    def reset_parameters(self) -> None:
        """Draws all parameters again; those that two methods share start equal."""
        super().reset_parameters()
        for module in (*self.projections, *self.tables, self.out_norm, self.classifier):
            if module is not None:
                module.reset_parameters()

    def forward(  # type: ignore[override]
        self,
        x: TypedFeatures,
        edge_index: Any,
        *,
        edge_weight: Tensor | None = None,
        dropout_seed: Tensor | None = None,
    ) -> Tensor:
        """Class scores of the target nodes, [num_targets, out_channels].

        Args:
            x: The nodes.
            edge_index: The edges between all of them, in any form the layers take.
            edge_weight: A weight for every edge, as in :class:`NodeClassifier`.
            dropout_seed: A 0-d int64 tensor that fixes all dropout masks.
        """
        h = self.shared_inputs(x)
        dropout_seed = self._dropout_seed(dropout_seed, h.device)
        options: Any = {"edge_weight": edge_weight, "dropout_seed": dropout_seed}
        h = super().forward(h, edge_index, **options)
        return self.classify(h[: x.num_targets], dropout_seed)

    def shared_inputs(self, x: TypedFeatures) -> Tensor:
        """All nodes as vectors of the shared space, in the order of the graph."""
        stacked = torch.cat([self.shared_rows(n, v) for n, v in enumerate(x.inputs)])
        return stacked if x.order is None else stacked.index_select(0, x.order)

    def shared_rows(self, number: int, values: Features | None) -> Tensor:
        """Nodes of one type as vectors of the shared space.

        Args:
            number: The place of the type among the node types.
            values: Their features or numbers, like in `TypedFeatures.inputs`.
        """
        kind = self.node_types[number]
        same = [
            bool(k.num_features) == bool(kind.num_features) for k in self.node_types
        ]
        place = sum(same[:number])
        if not kind.num_features:
            vectors: Tensor = self.tables[place](values)
            return vectors
        if values is None:
            raise ValueError(f"the nodes of type {kind.name} have no features")
        return project(self.projections[place], as_features(values))

    def classify(self, h: Tensor, dropout_seed: Tensor | None = None) -> Tensor:
        """Class scores from what the last layer gives."""
        if self.out_norm is not None:
            h = self.out_norm(h)
        if self.act is not None:
            h = self.act(h)
        if dropout_seed is not None:
            # The layers use the numbers below.
            seed = fold_in(dropout_seed, 2 * len(self.convs))
            h = drop_features(h, self.dropout, seed)  # type: ignore[assignment]
        scores: Tensor = self.classifier(h)
        return scores


def build_typed_model(
    method: str,
    node_types: Sequence[NodeType],
    hidden_channels: int,
    out_channels: int,
    *,
    shared_channels: int | None = None,
    dropout: float = 0.0,
    act: str | Callable[..., Any] | None = "elu",
    norm: str | Callable[..., Any] | None = None,
    jk: str | None = None,
    bias_before_norm: bool = True,
    **kwargs: Any,
) -> TypedNodeClassifier:
    """Builds a classifier of the nodes of one type in a typed graph.

    Args:
        method: A key of ``METHODS``.
        node_types: The node types; the first is the one to classify.
        hidden_channels: Total width of a hidden layer, all heads together.
        out_channels: Number of classes.
        shared_channels: Width of the shared space; None for `hidden_channels`.
        dropout: Dropout rate on the input of every layer and of the classifier.
        act: Activation after every layer.
        norm: Normalisation after every layer.
        jk: Jumping-knowledge mode.
        bias_before_norm: Whether layers that batch norm follows have a bias.
        **kwargs: Further arguments of `build_model`.

    Raises:
        ValueError: There is no such method, an argument does not fit it, or there are
            no node types.
    """
    if not node_types:
        raise ValueError("node_types is empty; name at least the type to classify")
    shared = hidden_channels if shared_channels is None else shared_channels
    layers = build_model(
        method,
        shared,
        hidden_channels,
        shared,
        dropout=dropout,
        act=act,
        norm=norm,
        jk=jk,
        **kwargs,
    )
    model = TypedNodeClassifier(
        layers.method,
        list(layers.convs),
        node_types,
        hidden_channels,
        shared,
        out_channels,
        dropout,
        act,
        norm,
        jk,
        bias_before_norm,
    )
    model.reset_parameters()
    return model
