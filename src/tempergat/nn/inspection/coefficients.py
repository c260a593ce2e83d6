"""What the layers of a model compute: attention coefficients, features, gates.

Coefficients are in the order of the caller's edges.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.typing import EdgeType

from tempergat.base import UserError
from tempergat.nn.conv._base import AttentionLayer
from tempergat.nn.inspection.calls import GraphCall, LayerCall, graph_call, layer_call
from tempergat.nn.models import NodeClassifier
from tempergat.ops import original_module


@dataclass(frozen=True, eq=False, repr=False)
class LayerAttention:
    """The attention coefficients of one call of a layer.

    The coefficients of all edges into a node and of its added self-loop sum to 1, but
    for a layer that gets an ``edge_weight``, which is a factor of them. For a typed
    graph, tensors of edges come in a dict by edge type, and `self_loops` in one by node
    type.

    Attributes:
        layer: The name of the layer in the model, like ``convs.0``.
        edge_index: The caller's edges, [2, E].
        weights: The coefficient of each of them, [E, heads]; 0 where `used` is False.
        used: Whether the layer got the edge, [E]. A layer with ``add_self_loops``
            replaces the self-loops of ``edge_index`` by its own, and in a sampled batch
            later layers get only the edges near the seeds.
        self_loops: The coefficients of the self-loops that the layer added, for nodes
            0, 1, ..., [nodes, heads]; None if it adds none.
        edge_id: The number of each edge in the whole graph, int64: ``e_id`` of a
            sampled batch, 0, 1, ... otherwise.
        from_model: Whether the model made the edges of this layer itself, like one that
            drops or adds edges. All tensors are then those of the layer's own edges.
        temperature: The temperature: 0-d, [heads], or None for plain attention.
    """

    layer: str
    edge_index: Tensor | dict[EdgeType, Tensor]
    weights: Tensor | dict[EdgeType, Tensor]
    used: Tensor | dict[EdgeType, Tensor]
    self_loops: Tensor | dict[str, Tensor] | None
    edge_id: Tensor | dict[EdgeType, Tensor]
    from_model: bool
    temperature: Tensor | None

    def __repr__(self) -> str:
        weights = self.weights
        parts = list(weights.values()) if isinstance(weights, dict) else [weights]
        edges = sum(part.size(0) for part in parts)
        words = [self.layer, f"{edges} edges", f"{parts[0].size(1)} heads"]
        if isinstance(weights, dict):
            words.insert(1, f"{len(weights)} edge types")
        if self.temperature is not None:
            words.append(f"temperature {float(self.temperature.mean()):.3g}")
        return f"LayerAttention({', '.join(words)})"


def attention(model: nn.Module, graph: Any, **arguments: Any) -> list[LayerAttention]:
    """The attention coefficients of every layer of a model on a graph.

    The model runs once, in evaluation mode and without gradients. A layer that is
    called several times is in the list several times.

    Args:
        model: A trained model of ``tempergat.train`` or ``tempergat.load_model``, or
            any module that holds layers of tempergat.
        graph: A PyG ``Data`` or ``HeteroData``, or a sampled batch of one; for a
            trained model also the name or path of a graph. The arguments of the
            module's ``forward`` are taken from it by name, as ``x``, ``edge_index`` or
            ``x_dict``. ``edge_attr`` is taken where a layer has an ``edge_dim``, other
            arguments that have a default are not.
        **arguments: Arguments of ``forward`` that are not in the graph.

    Returns:
        One entry for each call of a layer, in the order of the calls.

    Raises:
        UserError: The model has no attention layers, or cannot be called on the graph.
    """
    return run_with_attention(model, graph, **arguments)[1]


def run_with_attention(
    model: nn.Module, graph: Any, **arguments: Any
) -> tuple[Any, list[LayerAttention]]:
    """What a model gives on a graph, and the coefficients of its layers."""
    model = original_module(model)
    layers = {
        layer: name
        for name, layer in model.named_modules()
        if isinstance(layer, AttentionLayer)
    }
    if not layers:
        raise UserError(
            f"{type(model).__name__} has no attention layers of tempergat; give a "
            "model with TemperGATConv, TemperGATv2Conv or TemperTransformerConv, or "
            "convert PyG's layers with tempergat.upgrade"
        )
    call = graph_call(model, graph, arguments)
    recorded: list[LayerAttention] = []

    def record(layer: Any, args: Any, kwargs: Any, _: Any) -> None:
        name = layers[layer].removeprefix("module.")
        seen = layer_call(layer, args, kwargs)
        recorded.append(_in_callers_order(name, seen, call))

    # What torch.compile has compiled would not call the hooks.
    with (
        torch.no_grad(),
        _evaluating(model),
        torch.compiler.set_stance("force_eager"),
    ):
        hooks = [
            layer.register_forward_hook(record, with_kwargs=True) for layer in layers
        ]
        try:
            output = call.module(*call.args, **call.kwargs)
        finally:
            for hook in hooks:
                hook.remove()
    return output, recorded


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode; afterwards every module is in its mode from before."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode


def _in_callers_order(name: str, seen: LayerCall, call: GraphCall) -> LayerAttention:
    if call.rows_of_type is not None:
        return _of_all_types(name, seen, call)
    edges, ids, order, kind = call.edges, call.edge_ids, call.edge_order, None
    if isinstance(edges, dict):
        kind, order = _edge_type(seen, edges), None
        edges = None if kind is None else edges[kind]
        ids = ids.get(kind) if isinstance(ids, dict) else None
    elif edges is not None and not seen.has_edges_of(edges, order):
        edges = None
    from_model = edges is None and call.edges is not None
    if edges is None:
        edges, ids, order = seen.edge_index, None, None
    weights, used = _placed(seen, edges.size(1), order)
    edge_id = _numbers(ids, edges)
    facts: Any = (from_model, seen.temperature)
    if kind is None:
        parts: Any = (edges, weights, used, seen.loops, edge_id)
    else:
        loops = None if seen.loops is None else {kind[2]: seen.loops}
        parts = ({kind: edges}, {kind: weights}, {kind: used}, loops, {kind: edge_id})
    return LayerAttention(name, *parts, *facts)


def _of_all_types(name: str, seen: LayerCall, call: GraphCall) -> LayerAttention:
    """The coefficients of a layer that got the nodes of all types in one graph."""
    assert isinstance(call.edges, dict)
    assert call.rows_of_type is not None
    counts = [edges.size(1) for edges in call.edges.values()]
    weights, used = _placed(seen, sum(counts), call.edge_order)
    ids = call.edge_ids if isinstance(call.edge_ids, dict) else {}
    loops = None
    if seen.loops is not None:
        loops = {}
        for kind, rows in call.rows_of_type.items():
            # In a batch, later layers have fewer targets.
            rows = rows[rows < seen.loops.size(0)]
            loops[kind] = seen.loops.index_select(0, rows.to(seen.loops.device))
    return LayerAttention(
        layer=name,
        edge_index=call.edges,
        weights=dict(zip(call.edges, torch.split(weights, counts), strict=True)),
        used=dict(zip(call.edges, torch.split(used, counts), strict=True)),
        self_loops=loops,
        edge_id={k: _numbers(ids.get(k), edges) for k, edges in call.edges.items()},
        from_model=False,
        temperature=seen.temperature,
    )


def _placed(seen: LayerCall, count: int, order: Tensor | None) -> tuple[Tensor, Tensor]:
    """The coefficients of all edges of the caller, and which of them were used."""
    places = seen.edge_id
    if order is not None:
        places = order.to(places.device).index_select(0, places)
    weights = seen.weights.new_zeros(count, seen.weights.size(1))
    used = torch.zeros(count, dtype=torch.bool, device=places.device)
    weights[places] = seen.weights
    used[places] = True
    return weights, used


def _edge_type(seen: LayerCall, edges: dict[EdgeType, Tensor]) -> EdgeType | None:
    """The type whose edges a layer got; None if it is not clear."""
    for kind, given in edges.items():
        if seen.given is given:
            return kind
    equal = [kind for kind, given in edges.items() if seen.has_edges_of(given, None)]
    return equal[0] if len(equal) == 1 else None


def _numbers(ids: Any, edges: Tensor) -> Any:
    return torch.arange(edges.size(1), device=edges.device) if ids is None else ids


@dataclass(frozen=True, eq=False)
class LayerValues:
    """What one layer computes, in float64.

    Attributes:
        attention: Its coefficients.
        features: What its messages are made of, [nodes, heads * channels]: the
            projected features, gated where the gate comes first.
        gate: The gate of every node, likewise, or [nodes, heads]; None without one.
        residual: What the layer adds to its output; None without.
    """

    attention: LayerAttention
    features: Tensor
    gate: Tensor | None
    residual: Tensor | None


def model_values(model: NodeClassifier, data: Data) -> tuple[Tensor, list[LayerValues]]:
    """The scores of a classifier, and what each of its layers computes.

    Args:
        model: A classifier with attention layers, on the CPU; it is not changed.
        data: The graph, with features as the classifier takes them.
    """
    wide = copy.deepcopy(model).double()
    data = copy.copy(data)
    data.x = data.x.double()
    if data.edge_attr is not None:
        data.edge_attr = data.edge_attr.double()
    inputs: list[tuple[Any, Tensor]] = []
    hooks = [
        layer.register_forward_pre_hook(
            lambda layer, args: inputs.append((layer, args[0]))
        )
        for layer in wide.modules()
        if isinstance(layer, AttentionLayer)
    ]
    scores, layers = run_with_attention(wide, data)
    for hook in hooks:
        hook.remove()
    with torch.no_grad():
        values = [
            _values(layer, x, attention)
            for (layer, x), attention in zip(inputs, layers, strict=True)
        ]
    return scores, values


def _values(layer: AttentionLayer, x: Tensor, attention: LayerAttention) -> LayerValues:
    features: Tensor = layer.input_maps()[0](x)
    gate: Any = None
    if layer.gate is not None:
        gate = layer.gate_values(x)
        if layer.gate == "first":
            features = features * gate
    skip = layer.skip_map()
    residual = None if skip is None else skip(x)
    return LayerValues(attention, features, gate, residual)
