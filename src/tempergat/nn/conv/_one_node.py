"""Runs a layer on a small graph as one node of autograd."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from tempergat.nn.gate import FeatureGate
from tempergat.nn.projection import Features, is_plain, project
from tempergat.nn.sides import Sides
from tempergat.nn.temperature import Temperature
from tempergat.ops import (
    Graph,
    LayerTensors,
    has_global_hooks,
    is_tracing,
    layer_as_one_node,
)


def run_as_one_node(
    layer: Any, x: Sides[Features], graph: Graph, seeds: Tensor | None
) -> Tensor | None:
    """The output of a layer without edge features; None where this way does not serve.

    Args:
        layer: An attention layer.
        x: Its input.
        graph: The graph.
        seeds: The seeds of its dropout; None for no dropout.
    """
    # First: a compiler would record what is looked at.
    if is_tracing() or layer.attention is None or not x.is_shared:
        return None
    features = x.src
    if not isinstance(features, Tensor):
        return None
    if layer.gate == "first" or layer.softmax_temperature.is_fixed:
        return None
    parts = (type(layer.feature_gate), type(layer.softmax_temperature))
    if parts != (FeatureGate, Temperature):
        # A subclass may compute something else.
        return None
    projections = layer._projections()
    gate = layer.lin_gate if layer.gate is not None else None
    maps = (projections.src, projections.dst, gate)
    if has_global_hooks() or not all(lin is None or is_plain(lin) for lin in maps):
        return None
    src, dst = projections.src, projections.dst
    shared, alone = dst is src, layer.concat and layer.res is None
    att, att_dst = layer._attention_vectors()
    tensors = LayerTensors(
        features,
        src.weight,
        src.bias,
        None if shared else dst.weight,
        None if shared else dst.bias,
        att,
        att_dst,
        layer.theta,
        None if gate is None else gate.weight,
        None if gate is None else gate.bias,
        layer.bias if alone else None,
    )
    result = layer_as_one_node(
        layer.attention,
        graph,
        tensors,
        number=layer.softmax_temperature.parts(layer)[1],
        negative_slope=layer.negative_slope,
        dropout=0.0 if seeds is None else layer.dropout,
        dropout_seed=seeds,
    )
    if result is None:
        return None
    out, total = result
    if gate is not None:
        out = layer.feature_gate.record_output(layer, out, total)
    if alone:
        return out
    residual = None if layer.res is None else project(layer.res, x.src)
    combined: Tensor = layer._combine(layer._split_heads(out), residual)
    return combined
