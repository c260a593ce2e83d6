"""How a model is called on a graph that a user has as one object."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

from torch import Tensor, nn
from torch_geometric.data import Data, HeteroData

from tempergat.base import UserError
from tempergat.nn.batches import HasLayerGraphs
from tempergat.nn.conv._base import AttentionLayer
from tempergat.nn.models import NodeClassifier
from tempergat.nn.typed import TypedNodeClassifier

EdgeType: TypeAlias = tuple[str, str, str]
# Parameters of `forward` that take the graph itself.
_WHOLE_GRAPH = ("data", "batch", "graph")


@dataclass(frozen=True)
class GraphCall:
    """A call of a model, and whose edges its layers get.

    Attributes:
        module: What is called.
        args: Its positional arguments.
        kwargs: Its named arguments.
        edges: The caller's ``edge_index``; by edge type for a typed graph.
        edge_ids: The number of each of these edges in the whole graph, where the
            caller's graph is a sampled batch.
        edge_order: Where the layers get the caller's edges in another order: the place
            of each of their edges among the caller's.
        rows_of_type: Where the layers get the nodes of all types in one graph: the rows
            of each type. The edges of all types are then numbered through.
    """

    module: nn.Module
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    edges: Tensor | dict[EdgeType, Tensor] | None
    edge_ids: Tensor | dict[EdgeType, Tensor] | None = None
    edge_order: Tensor | None = None
    rows_of_type: dict[str, Tensor] | None = None


@runtime_checkable
class HasGraphCall(Protocol):
    """A model that prepares a graph itself, as trained models do."""

    def graph_call(self, graph: Any) -> GraphCall:
        """How it is called on a graph."""


def graph_call(model: nn.Module, graph: Any, given: Mapping[str, Any]) -> GraphCall:
    """How a model is called on a graph.

    Args:
        model: The model.
        graph: The graph.
        given: Arguments of its ``forward`` that are not taken from the graph.

    Raises:
        UserError: The graph has no value for an argument, or is no graph.
    """
    if isinstance(model, HasGraphCall):
        if given:
            raise UserError(
                f"a trained model prepares its input itself, so {', '.join(given)} "
                "cannot be given; leave it out"
            )
        return model.graph_call(graph)
    if not isinstance(graph, Data | HeteroData):
        raise UserError(
            f"the graph is a {type(graph).__name__}; give a PyG Data or HeteroData, or "
            "a batch of them"
        )
    if isinstance(model, TypedNodeClassifier):
        raise UserError(
            "a TypedNodeClassifier does not know how its graph was prepared; give the "
            "trained model that holds it (tempergat.load_model)"
        )
    arguments = dict(given)
    for parameter in inspect.signature(model.forward).parameters.values():
        if parameter.name not in arguments and _is_filled(model, parameter, graph):
            arguments[parameter.name] = _value(model, parameter, graph)
    return GraphCall(
        model,
        (),
        arguments,
        caller_edges(graph),
        caller_edge_ids(graph),
        edge_order(graph) if isinstance(model, NodeClassifier) else None,
    )


def caller_edges(graph: Data | HeteroData) -> Tensor | dict[EdgeType, Tensor] | None:
    """The edges of a graph; None for one whose edges are a sparse matrix."""
    if isinstance(graph, HeteroData):
        found: dict[EdgeType, Tensor] = graph.collect("edge_index", allow_empty=True)
        return found
    edges: Tensor | None = graph.edge_index
    return edges


def caller_edge_ids(
    graph: Data | HeteroData,
) -> Tensor | dict[EdgeType, Tensor] | None:
    """The number in the whole graph of each edge of a batch; None otherwise."""
    if isinstance(graph, HeteroData):
        found: dict[EdgeType, Tensor] = graph.collect("e_id", allow_empty=True)
        return found or None
    e_id: Tensor | None = graph.get("e_id")
    return e_id


def edge_order(graph: Data | HeteroData) -> Tensor | None:
    """The place of each edge of a batch's layer graphs among those of the batch."""
    order: Tensor | None = getattr(graph.get("graph"), "edge_order", None)
    return order


def _is_filled(
    model: nn.Module, parameter: inspect.Parameter, graph: Data | HeteroData
) -> bool:
    """Whether an argument is taken from the graph.

    Those with a default are left at it, but for edge features that a layer takes.
    """
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        return False
    if parameter.default is parameter.empty:
        return True
    takes_features = any(
        layer.edge_dim is not None
        for layer in model.modules()
        if isinstance(layer, AttentionLayer)
    )
    return (
        takes_features
        and parameter.name in ("edge_attr", "edge_attr_dict")
        and _attribute(graph, parameter.name) is not None
    )


def _value(
    model: nn.Module, parameter: inspect.Parameter, graph: Data | HeteroData
) -> Any:
    name = parameter.name
    if isinstance(model, NodeClassifier) and name == "edge_index":
        layer_graphs = graph.get("graph")
        if isinstance(layer_graphs, HasLayerGraphs):
            return layer_graphs
    found = _attribute(graph, name)
    if found is None and name in _WHOLE_GRAPH:
        return graph
    if found is None:
        raise UserError(
            f"forward of {type(model).__name__} takes {name}, which the graph does not "
            f"have; give it by name: attention(model, graph, {name}=...)"
        )
    return found


def _attribute(graph: Data | HeteroData, name: str) -> Any:
    """An attribute of the graph; by type for a typed graph; None without."""
    if not isinstance(graph, HeteroData):
        return graph.get(name)
    found = graph.collect(name.removesuffix("_dict"), allow_empty=True)
    return found or graph.get(name)
