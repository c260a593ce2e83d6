"""Calls: of a model on a graph that a user has as one object, and of its layers."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data, HeteroData
from torch_geometric.typing import EdgeType
from torch_geometric.utils import is_sparse

from tempergat.base import UserError
from tempergat.nn.adjacency import matrix_edges
from tempergat.nn.batches import HasLayerGraphs
from tempergat.nn.conv._base import AttentionLayer
from tempergat.nn.conv._call import Call
from tempergat.nn.models import NodeClassifier
from tempergat.nn.typed import TypedNodeClassifier

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

    @classmethod
    def on(
        cls,
        graph: Data | HeteroData,
        module: nn.Module,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        rows_of_type: dict[str, Tensor] | None = None,
    ) -> GraphCall:
        """A call on a graph, or on a batch of one, and its edges.

        They are None where the edges of the graph are a sparse matrix. A classifier
        gets those of a batch in the order of the batch's layer graphs.
        """
        order = None
        if isinstance(module, NodeClassifier):
            order = getattr(graph.get("graph"), "edge_order", None)
        if isinstance(graph, HeteroData):
            edges = graph.collect("edge_index", allow_empty=True)
            edge_ids = graph.collect("e_id", allow_empty=True) or None
        else:
            edges, edge_ids = graph.edge_index, graph.get("e_id")
        return cls(module, args, kwargs, edges, edge_ids, order, rows_of_type)


def graph_call(model: nn.Module, graph: Any, given: Mapping[str, Any]) -> GraphCall:
    """How a model is called on a graph.

    Args:
        given: Arguments of its ``forward`` that are not taken from the graph.

    Raises:
        UserError: The graph has no value for an argument, or is no graph.
    """
    prepared_call = getattr(model, "graph_call", None)
    if prepared_call is not None:
        if given:
            raise UserError(
                f"a trained model prepares its input itself, so {', '.join(given)} "
                "cannot be given; leave it out"
            )
        call: GraphCall = prepared_call(graph)
        return call
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
    return GraphCall.on(graph, model, (), arguments)


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
    value = _attribute(graph, name)
    if value is None and name in _WHOLE_GRAPH:
        return graph
    if value is None:
        raise UserError(
            f"forward of {type(model).__name__} takes {name}, which the graph does not "
            f"have; give it by name: attention(model, graph, {name}=...)"
        )
    return value


def _attribute(graph: Data | HeteroData, name: str) -> Any:
    """An attribute of the graph; by type for a typed graph; None without."""
    if not isinstance(graph, HeteroData):
        return graph.get(name)
    by_type = graph.collect(name.removesuffix("_dict"), allow_empty=True)
    return by_type or graph.get(name)


@dataclass(frozen=True, eq=False)
class LayerCall:
    """What a layer did in one call.

    Attributes:
        given: The edges in the form in which the layer got them; the entries of a
            sparse matrix as an ``edge_index``.
        ends: Source and target of every edge with a coefficient, in the order of the
            rows of ``edge_index``, [2, used].
        edge_id: The column of ``edge_index`` that each of these edges has, [used].
        weights: Their coefficients, [used, heads].
        loops: The coefficients of added self-loops, [nodes, heads]; None without.
        num_edges: The number of columns of ``edge_index``.
        temperature: The layer's temperature.
    """

    given: Any
    ends: Tensor
    edge_id: Tensor
    weights: Tensor
    loops: Tensor | None
    num_edges: int
    temperature: Tensor | None

    @property
    def edge_index(self) -> Tensor:
        """The layer's own edges, as a tensor."""
        if isinstance(self.given, Tensor):
            return self.given.as_subclass(Tensor)
        # Self-loops that a graph had before it replaced them are not known any more.
        edges = self.ends.new_full((2, self.num_edges), -1)
        edges[:, self.edge_id] = self.ends
        return edges

    def has_edges_of(self, edge_index: Tensor, order: Tensor | None) -> bool:
        """Whether the layer's edges are those of an ``edge_index``, or its first ones.

        Args:
            edge_index: The edges, [2, E].
            order: The place in ``edge_index`` of each of the layer's edges, if not its
                number.
        """
        if self.num_edges > edge_index.size(1):
            return False
        places = self.edge_id
        if order is not None:
            places = order.to(places.device).index_select(0, places)
        edges = edge_index.as_subclass(Tensor).to(places.device)
        return torch.equal(edges.index_select(1, places).long(), self.ends.long())


def layer_call(
    layer: AttentionLayer, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> LayerCall:
    """Calls a layer again, for its coefficients."""
    bound = inspect.signature(layer.forward).bind(*args, **kwargs)
    bound.arguments["return_attention_weights"] = True
    _, packed = layer.forward(*bound.args, **bound.kwargs)
    weights = _unpacked(packed)
    if weights.dim() > 2:
        raise UserError(
            f"a layer was called on {list(weights.shape[:-2])} feature sets, but "
            "coefficients are shown of one; give the model x of one set"
        )

    given = bound.arguments["edge_index"]
    absent = (None, None, None, None, None)
    size = bound.arguments.get("size")
    adjacency = Call(layer, bound.arguments["x"], given, *absent, size).adjacency
    graph = adjacency.graph
    # A matrix has its entries in an order of its own, with the self-loops among them.
    numbers = torch.arange(graph.num_all_edges, device=weights.device)
    order = _unpacked(adjacency.pack(numbers))
    ends = torch.stack([graph.src, graph.dst]).long()[:, order]
    temperature = layer.temperature
    if temperature is not None:
        temperature = temperature.detach()
    if is_sparse(given):
        given = matrix_edges(given)
    elif layer.target_to_source:
        ends = ends.flip(0)
    edge_id = graph.edge_id.long()[order]
    is_edge = edge_id < graph.num_edges
    return LayerCall(
        given,
        ends[:, is_edge],
        edge_id[is_edge],
        weights[is_edge],
        weights[~is_edge] if layer.add_self_loops else None,
        graph.num_edges,
        temperature,
    )


def _unpacked(packed: Any) -> Tensor:
    """The values of edges that a layer gave back with the edges."""
    values: Tensor = packed[1] if isinstance(packed, tuple) else packed.storage.value()
    return values
