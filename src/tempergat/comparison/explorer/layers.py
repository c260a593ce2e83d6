"""The layers of a model as the page's script computes them, in short text."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tempergat.nn import LayerValues, NodeClassifier

# How many inputs of a gate are named at either end.
_STRONGEST = 4
# With fewer numbers than this, exact ones are as short as matters.
_FEW = 4096
_LEVELS = 2**16 - 1

# An array as text, which the page's script unpacks.
Packed = dict[str, object]


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
    if any(getattr(conv, "lin_beta", None) is not None for conv in model.convs):
        return "the model has gated skips"
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
    for number, (conv, computed) in enumerate(zip(model.convs, values, strict=True)):
        layer: Any = conv
        record: dict[str, Any] = {
            "heads": layer.heads,
            "channels": layer.out_channels,
            "concat": layer.concat,
            "temperature": _temperatures(computed, layer.heads),
            "learned": computed.attention.temperature is not None,
            "gate": layer.gate,
        }
        if number == 0 or not exact:
            record["logits"] = pack_logits(_logits(computed, slots))
            if computed.gate is not None:
                record["gates"] = pack_numbers(computed.gate.numpy())
        if exact and number == 0:
            record["features"] = pack_numbers(computed.features.numpy())
            if computed.residual is not None:
                record["residual"] = pack_numbers(computed.residual.numpy())
        elif exact:
            record["weights"] = _weights(layer)
            record["attention"] = layer.attention
            record["slope"] = layer.negative_slope
        if exact:
            record["bias"] = _packed_tensor(layer.bias)
            record["after"] = _after(model, number)
        if layer.gate is not None:
            record["strongest"] = _strongest(layer)
        records.append(record)
    return records


def _logits(values: LayerValues, slots: Slots) -> np.ndarray:
    """Logits without the temperature, less the largest of the node, [slots, heads]."""
    attention = values.attention
    assert isinstance(attention.weights, Tensor)
    parts = [attention.weights]
    if isinstance(attention.self_loops, Tensor):
        parts.append(attention.self_loops)
    weights = torch.cat(parts)[torch.from_numpy(slots.order)]
    least = torch.finfo(weights.dtype).tiny
    temperature = 1.0 if attention.temperature is None else attention.temperature
    logits: np.ndarray = (weights.clamp(min=least).log() * temperature).numpy()
    rows = np.flatnonzero(np.diff(slots.pointer))
    if not rows.size:
        return logits
    largest = np.maximum.reduceat(logits, slots.pointer[rows], axis=0)
    logits -= np.repeat(largest, np.diff(slots.pointer)[rows], axis=0)
    return logits


def _temperatures(values: LayerValues, heads: int) -> list[float]:
    temperature = values.attention.temperature
    if temperature is None:
        return [1.0] * heads
    by_head: list[float] = temperature.expand(heads).tolist()
    return by_head


def _weights(layer: Any) -> dict[str, Packed | None]:
    """The parameters of a layer, whichever kind it is."""
    weights: dict[str, Tensor | None]
    if layer.attention == "gat":
        weights = {
            "source": layer.lin.weight,
            "att_source": layer.att_src,
            "att_target": layer.att_dst,
        }
    elif layer.attention == "dot_product":
        weights = {
            "source": layer.lin_value.weight,
            "source_bias": layer.lin_value.bias,
            "key": layer.lin_key.weight,
            "key_bias": layer.lin_key.bias,
            "target": layer.lin_query.weight,
            "target_bias": layer.lin_query.bias,
        }
    else:
        weights = {
            "source": layer.lin_l.weight,
            "source_bias": layer.lin_l.bias,
            "target": layer.lin_r.weight,
            "target_bias": layer.lin_r.bias,
            "att": layer.att,
        }
    if layer.gate is not None:
        weights |= {"gate": layer.lin_gate.weight, "gate_bias": layer.lin_gate.bias}
    skip = layer.skip_map()
    if skip is not None:
        weights |= {"residual": skip.weight, "residual_bias": skip.bias}
    return {name: _packed_tensor(value) for name, value in weights.items()}


def _packed_tensor(value: Tensor | None) -> Packed | None:
    if value is None:
        return None
    return pack_numbers(value.detach().double().flatten().numpy())


def _after(model: NodeClassifier, number: int) -> dict[str, Any]:
    """Normalisation and activation after a layer."""
    if number >= len(model.norms):
        return {"act": None, "scale": None, "shift": None}
    act = {nn.ELU: "elu", nn.ReLU: "relu"}.get(type(model.act))
    norm = _batch_norm(model.norms[number])
    if norm is None:
        return {"act": act, "scale": None, "shift": None}
    assert norm.running_var is not None
    assert norm.running_mean is not None
    scale = norm.weight.double() / (norm.running_var.double() + norm.eps).sqrt()
    shift = norm.bias.double() - norm.running_mean.double() * scale
    return {"act": act, "scale": _packed_tensor(scale), "shift": _packed_tensor(shift)}


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


def pack_integers(values: np.ndarray) -> Packed:
    """Whole numbers, in the smallest type that holds them."""
    low, high = (int(values.min()), int(values.max())) if values.size else (0, 0)
    for kind in ("uint8", "int16", "uint16", "int32"):
        limits = np.iinfo(kind)
        if limits.min <= low and high <= limits.max:
            return _packed(kind, values.astype(kind))
    raise OverflowError(f"{high} needs more than 32 bits")


def pack_numbers(values: np.ndarray) -> Packed:
    """Numbers to 1/131,070 of their range; few of them in single precision."""
    if values.size <= _FEW:
        return _packed("float32", values.astype("<f4"))
    low, high = float(values.min()), float(values.max())
    step = (high - low) / _LEVELS or 1.0
    levels = np.rint((values - low) / step).astype("<u2")
    return _packed("levels", levels) | {"low": low, "step": step}


def pack_logits(values: np.ndarray) -> Packed:
    """Differences from the largest logit of a row, in half precision.

    The error of a coefficient exp(d / T) is then below 0.0002 at any temperature T,
    because it is at most 2^-11 times d/T exp(d/T).
    """
    return _packed("float16", np.maximum(values, -60000.0).astype("<f2"))


def _packed(kind: str, array: np.ndarray) -> Packed:
    little = array.astype(array.dtype.newbyteorder("<"))
    text = base64.b64encode(np.ascontiguousarray(little).tobytes()).decode("ascii")
    return {"kind": kind, "text": text}
