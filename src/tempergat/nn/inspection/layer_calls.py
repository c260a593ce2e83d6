"""One call of an attention layer: which edges it had, and their coefficients."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.typing import SparseTensor
from torch_geometric.utils import is_torch_sparse_tensor

from tempergat.nn.adjacency import matrix_edges, resolve
from tempergat.nn.conv._base import AttentionLayer
from tempergat.nn.conv._inputs import count_nodes
from tempergat.ops import Graph


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
    """Calls a layer again, for its coefficients.

    Args:
        layer: The layer.
        args: The positional arguments of the call.
        kwargs: Its named arguments.
    """
    bound = inspect.signature(layer.forward).bind(*args, **kwargs)
    bound.arguments["return_attention_weights"] = True
    _, packed = layer.forward(*bound.args, **bound.kwargs)
    weights = packed[1] if isinstance(packed, tuple) else packed.storage.value()

    given = bound.arguments["edge_index"]
    sides = layer._check_features(bound.arguments["x"])
    graph = resolve(
        given,
        count_nodes(sides, bound.arguments.get("size"), given),
        self_loops=layer.add_self_loops,
        reverse=layer.target_to_source,
        static_shapes=False,
        cache=layer.cache,
    ).graph
    ends = torch.stack([graph.src, graph.dst]).long()
    temperature = layer.temperature
    if temperature is not None:
        temperature = temperature.detach()
    if _is_matrix(given):
        return _of_matrix(layer, given, ends, weights, temperature)
    if layer.target_to_source:
        ends = ends.flip(0)
    edge_id = graph.edge_id.long()
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


def _is_matrix(given: Any) -> bool:
    if isinstance(given, Graph):
        return False
    return isinstance(given, SparseTensor) or is_torch_sparse_tensor(given)


def _of_matrix(
    layer: AttentionLayer,
    given: Any,
    ends: Tensor,
    weights: Tensor,
    temperature: Tensor | None,
) -> LayerCall:
    """The call of a layer whose edges are the entries of a sparse matrix.

    With added self-loops, the layer has the entries in another order.
    """
    entries = matrix_edges(given)
    count = entries.size(1)
    if not layer.add_self_loops:
        numbers = torch.arange(count, device=ends.device)
        return LayerCall(entries, ends, numbers, weights, None, count, temperature)
    is_loop = ends[0] == ends[1]
    kept = ends[:, ~is_loop]
    # An entry of a matrix is known by its row and column.
    size = int(ends.max()) + 1 if ends.numel() else 1
    keys, places = torch.sort(entries[0] * size + entries[1])
    found = torch.searchsorted(keys, kept[0] * size + kept[1])
    nodes = ends[0, is_loop].argsort()
    return LayerCall(
        entries,
        kept,
        places.index_select(0, found),
        weights[~is_loop],
        weights[is_loop].index_select(0, nodes),
        count,
        temperature,
    )
