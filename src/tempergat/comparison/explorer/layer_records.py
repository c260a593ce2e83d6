"""The layers of a model as the page's script computes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tempergat.comparison.explorer import packing
from tempergat.comparison.explorer.packing import Packed
from tempergat.nn import LayerValues, NodeClassifier

# How many inputs of a gate are named at either end.
_STRONGEST = 4


@dataclass(frozen=True)
class Slots:
    """Where the coefficients of each node are: its edges, then its own self-loop.

    Attributes:
        pointer: Where the slots of each node begin and end.
        source: The node at the other end of each slot.
        order: Where each slot is found in the coefficients of edges followed by those
            of self-loops.
    """

    pointer: np.ndarray
    source: np.ndarray
    order: np.ndarray


def slots_of(edges: Tensor, used: Tensor, has_edges: Tensor, self_loops: bool) -> Slots:
    """The slots of all nodes of a page.

    Args:
        edges: Its edges between its own nodes, [2, E].
        used: Which of them the layers use.
        has_edges: Which nodes have their incoming edges in the page.
        self_loops: Whether the layers add self-loops.
    """
    count = has_edges.size(0)
    places = used.nonzero().squeeze(1)
    loops = has_edges.nonzero().squeeze(1) if self_loops else places[:0]
    target = torch.cat([edges[1, places], loops])
    source = torch.cat([edges[0, places], loops])
    order = torch.cat([places, edges.size(1) + loops])
    sorted_target, by_target = torch.sort(target, stable=True)
    pointer = torch.searchsorted(sorted_target, torch.arange(count + 1))
    return Slots(pointer.numpy(), source[by_target].numpy(), order[by_target].numpy())


def why_not_exact(model: NodeClassifier, uses_edge_features: bool) -> str | None:
    """Why the page cannot compute predictions itself; None if it can.

    Args:
        model: The model.
        uses_edge_features: Whether it takes edge features.
    """
    if uses_edge_features:
        return "the model uses edge features"
    if model.lin is not None:
        return "the model combines the outputs of all its layers (jk)"
    if not isinstance(model.act, nn.ELU | nn.ReLU | nn.Identity | type(None)):
        return f"the model has the activation {type(model.act).__name__}"
    for norm in model.norms:
        if not isinstance(norm, nn.Identity) and _batch_norm(norm) is None:
            return f"the model has the normalisation {type(norm).__name__}"
    return None


def layer_records(
    model: NodeClassifier, values: Sequence[LayerValues], slots: Slots, exact: bool
) -> list[dict[str, Any]]:
    """What the page's script needs of every layer.

    Args:
        model: The model.
        values: What its layers compute, for the nodes and edges of the page.
        slots: The order of the coefficients in the page.
        exact: Whether the page computes predictions. The first layer then comes as what
            it computes for each node, and later ones as their weights.
    """
    records = []
    for number, (conv, found) in enumerate(zip(model.convs, values, strict=True)):
        layer: Any = conv
        record: dict[str, Any] = {
            "heads": layer.heads,
            "channels": layer.out_channels,
            "concat": layer.concat,
            "temperature": _temperatures(found, layer.heads),
            "learned": found.attention.temperature is not None,
            "gate": layer.gate,
        }
        if number == 0 or not exact:
            record["logits"] = packing.logits(_logits(found, slots))
            if found.gate is not None:
                record["gates"] = packing.numbers(found.gate.numpy())
        if exact and number == 0:
            record["features"] = packing.numbers(found.features.numpy())
            if found.residual is not None:
                record["residual"] = packing.numbers(found.residual.numpy())
        elif exact:
            record["weights"] = _weights(layer)
            record["attention"] = layer.attention
            record["slope"] = layer.negative_slope
        if exact:
            record["bias"] = _optional(layer.bias)
            record["after"] = _after(model, number)
        if layer.gate is not None:
            record["strongest"] = _strongest(layer)
        records.append(record)
    return records


def _logits(found: LayerValues, slots: Slots) -> np.ndarray:
    """Logits without the temperature, less the largest of the node, [slots, heads]."""
    seen = found.attention
    assert isinstance(seen.weights, Tensor)
    parts = [seen.weights]
    if isinstance(seen.self_loops, Tensor):
        parts.append(seen.self_loops)
    weights = torch.cat(parts)[torch.from_numpy(slots.order)]
    least = torch.finfo(weights.dtype).tiny
    temperature = 1.0 if seen.temperature is None else seen.temperature
    logits: np.ndarray = (weights.clamp(min=least).log() * temperature).numpy()
    rows = np.flatnonzero(np.diff(slots.pointer))
    if not rows.size:
        return logits
    largest = np.maximum.reduceat(logits, slots.pointer[rows], axis=0)
    logits -= np.repeat(largest, np.diff(slots.pointer)[rows], axis=0)
    return logits


def _temperatures(found: LayerValues, heads: int) -> list[float]:
    temperature = found.attention.temperature
    if temperature is None:
        return [1.0] * heads
    values: list[float] = temperature.expand(heads).tolist()
    return values


def _weights(layer: Any) -> dict[str, Packed | None]:
    """The parameters of a layer, whichever of both kinds it is."""
    found: dict[str, Tensor | None]
    if layer.attention == "gat":
        found = {
            "source": layer.lin.weight,
            "att_source": layer.att_src,
            "att_target": layer.att_dst,
        }
    else:
        found = {
            "source": layer.lin_l.weight,
            "source_bias": layer.lin_l.bias,
            "target": layer.lin_r.weight,
            "target_bias": layer.lin_r.bias,
            "att": layer.att,
        }
    if layer.gate is not None:
        found |= {"gate": layer.lin_gate.weight, "gate_bias": layer.lin_gate.bias}
    if layer.res is not None:
        found["residual"] = layer.res.weight
    return {name: _optional(value) for name, value in found.items()}


def _optional(value: Tensor | None) -> Packed | None:
    if value is None:
        return None
    return packing.numbers(value.detach().double().flatten().numpy())


def _after(model: NodeClassifier, number: int) -> dict[str, Any]:
    """Normalisation and activation behind a layer."""
    if number >= len(model.norms):
        return {"act": None, "scale": None, "shift": None}
    names = {nn.ELU: "elu", nn.ReLU: "relu"}
    act = names.get(type(model.act)) if model.act is not None else None
    norm = _batch_norm(model.norms[number])
    if norm is None:
        return {"act": act, "scale": None, "shift": None}
    assert norm.running_var is not None
    assert norm.running_mean is not None
    scale = norm.weight.double() / (norm.running_var.double() + norm.eps).sqrt()
    shift = norm.bias.double() - norm.running_mean.double() * scale
    return {"act": act, "scale": _optional(scale), "shift": _optional(shift)}


def _batch_norm(norm: nn.Module) -> nn.BatchNorm1d | None:
    """The batch normalisation in PyG's module of that name; None for other modules."""
    inner = getattr(norm, "module", norm)
    return inner if isinstance(inner, nn.BatchNorm1d) else None


def _strongest(layer: Any) -> list[list[tuple[int, float]]]:
    """For each dimension: the inputs that open its gate most, then those that close."""
    weight = layer.lin_gate.weight.detach()
    count = min(_STRONGEST, weight.size(1) // 2)
    opening, closing = weight.topk(count, dim=1), weight.topk(count, 1, largest=False)
    numbers = torch.cat([opening.indices, closing.indices.flip(1)], dim=1).tolist()
    values = torch.cat([opening.values, closing.values.flip(1)], dim=1).tolist()
    return [
        [(place, round(value, 4)) for place, value in zip(*row, strict=True)]
        for row in zip(numbers, values, strict=True)
    ]
