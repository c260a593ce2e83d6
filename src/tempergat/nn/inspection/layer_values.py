"""What the layers of a node classifier compute for every node."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from tempergat.nn.conv._base import AttentionLayer
from tempergat.nn.inspection.coefficients import LayerAttention, run_with_attention
from tempergat.nn.models import NodeClassifier


@dataclass(frozen=True, eq=False)
class LayerValues:
    """What one layer computes, in float64.

    Attributes:
        attention: Its coefficients.
        features: What its messages are made of, [nodes, heads * channels]: the
            projected features, gated where the gate comes first.
        gate: The gate of every node, likewise; None without one.
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
        found = [
            _values(layer, x, seen)
            for (layer, x), seen in zip(inputs, layers, strict=True)
        ]
    return scores, found


def _values(layer: AttentionLayer, x: Tensor, seen: LayerAttention) -> LayerValues:
    features: Tensor = layer._projections().src(x)
    gate: Tensor | None = None
    if layer.gate is not None:
        found = layer.gate_values(x)
        assert isinstance(found, Tensor)
        gate = found
        if layer.gate == "first":
            features = features * gate
    residual = None if layer.res is None else layer.res(x)
    return LayerValues(seen, features, gate, residual)
