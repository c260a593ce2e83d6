"""Layers from checkpoints of DGL's GATConv and GATv2Conv."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from tempergat.nn.conv._base import AttentionLayer
from tempergat.nn.conv.gat import TemperGATConv
from tempergat.nn.conv.gatv2 import TemperGATv2Conv
from tempergat.nn.convert.pyg import make_layer, start_gate
from tempergat.nn.gate import GateKind
from tempergat.nn.temperature import TemperatureKind

# Each way in which DGL's layers name their weights, with the names given here.
_GAT = {"attn_l": "att_src", "attn_r": "att_dst"}
_SHARED_MAP = _GAT | {"fc.weight": "lin.weight"}
_TWO_MAPS = _GAT | {
    "fc_src.weight": "lin_src.weight",
    "fc_dst.weight": "lin_dst.weight",
}
_GATV2 = {
    "attn": "att",
    "fc_src.weight": "lin_l.weight",
    "fc_dst.weight": "lin_r.weight",
}
_LAYOUTS = (_SHARED_MAP, _TWO_MAPS, _GATV2)
_GATV2_BIASES = {"fc_src.bias": "lin_l.bias", "fc_dst.bias": "lin_r.bias"}
_OUTPUT = ("bias", "res_fc.weight", "res_fc.bias")
_KNOWN = {*_SHARED_MAP, *_TWO_MAPS, *_GATV2, *_GATV2_BIASES, *_OUTPUT}
_SHOWN = 3


def from_dgl(
    state_dict: Mapping[str, Tensor],
    *,
    concat: bool | None = None,
    residual: bool | Sequence[bool] = False,
    add_self_loops: bool = False,
    negative_slope: float = 0.2,
    dropout: float = 0.0,
    temperature: TemperatureKind = "layer",
    gate: GateKind | bool = "post",
    init_temp: float = 1.0,
) -> list[AttentionLayer]:
    """The layers of a DGL checkpoint, which give the outputs they gave in DGL.

    Takes the state dict of one ``dgl.nn.GATConv`` or ``GATv2Conv``, or of a model of
    several, one after another. Activations and the dropout of features between layers
    are not part of a state dict: apply them as the model did::

        conv1, conv2 = tempergat.from_dgl(torch.load("gat.pt", weights_only=True))
        out = conv2(F.elu(conv1(x, edge_index)), edge_index)

    Where the model gives DGL's layers an ``edge_weight``, give it to these.

    Args:
        state_dict: The weights by name.
        concat: Whether the heads of the last layer are joined, by ``flatten(1)``, and
            not averaged, by ``mean(1)``. None for what DGL's examples do: joined in a
            single layer, averaged at the end of several. Earlier layers have what the
            width of the next one tells.
        residual: Whether the layers were made with ``residual=True``, or this for each
            layer. Only a layer that keeps its width needs it: any other residual has
            weights and is found.
        add_self_loops: Whether the layers add self-loops. DGL's do not: its users call
            ``dgl.add_self_loop`` on the graph.
        negative_slope: As the layers in DGL had it.
        dropout: Dropout of attention weights, DGL's ``attn_drop``.
        temperature: As in the layers.
        gate: As in the layers; it starts as `upgrade` starts it.
        init_temp: Initial value of a learnable temperature. Outputs are DGL's for 1.

    Raises:
        ValueError: A name or a shape is not one of these layers, or the layers do not
            follow one another.
    """
    groups = _grouped(state_dict)
    names = list(groups)
    residuals = [residual] * len(names) if isinstance(residual, bool) else residual
    if len(residuals) != len(names):
        raise ValueError(
            f"residual has {len(residuals)} values, but there are {len(names)} layers: "
            f"{', '.join(names)}"
        )
    joined = _joined_heads(groups, (len(names) == 1) if concat is None else concat)
    settings: dict[str, Any] = {
        "add_self_loops": add_self_loops,
        "negative_slope": negative_slope,
        "dropout": dropout,
        "temperature": temperature,
        "gate": gate,
        "init_temp": init_temp,
    }
    with torch.no_grad():
        return [
            _make_layer(name, groups[name], joined[name], adds_input, settings)
            for name, adds_input in zip(names, residuals, strict=True)
        ]


def _grouped(state_dict: Mapping[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    """The weights of each layer, layers in their order."""
    groups: dict[str, dict[str, Tensor]] = {}
    unknown = []
    for key, value in state_dict.items():
        # The longest: "res_fc.bias" also ends with "bias".
        names = [n for n in _KNOWN if f".{key}".endswith(f".{n}")]
        name = max(names, key=len, default="")
        if not name or not isinstance(value, Tensor):
            unknown.append(key)
        else:
            groups.setdefault(key.removesuffix(name).rstrip("."), {})[name] = value
    # A module of another kind may have a weight called "bias".
    for prefix, weights in list(groups.items()):
        if not any(name.startswith("attn") for name in weights):
            unknown += [f"{prefix}.{name}" for name in groups.pop(prefix)]
    if unknown or not groups:
        shown = ", ".join(unknown[:_SHOWN]) + (", ..." if unknown[_SHOWN:] else "")
        raise ValueError(
            f"the state dict has {len(unknown)} entries that belong to no GATConv or "
            f"GATv2Conv of DGL ({shown}); pass the entries of these layers alone"
            if unknown
            else "the state dict is empty; pass that of a GATConv or GATv2Conv of DGL"
        )
    # Some formats sort keys as text, and then layer 10 comes before layer 2.
    if len({re.sub(r"\d+", "", prefix) for prefix in groups}) == 1:
        numbers = {p: [int(n) for n in re.findall(r"\d+", p)] for p in groups}
        return {
            prefix: groups[prefix]
            for prefix in sorted(groups, key=lambda p: numbers[p])
        }
    return groups


def _joined_heads(
    groups: Mapping[str, Mapping[str, Tensor]], last: bool
) -> dict[str, bool]:
    """Whether each layer joins its heads; the inputs of the next layer show it."""
    names = list(groups)
    joined = {names[-1]: last}
    for name, following in pairwise(names):
        heads, channels = _attention_shape(name, groups[name])
        width = _input_widths(following, groups[following])[0]
        if width not in (heads * channels, channels):
            raise ValueError(
                f"layer {name!r} gives {heads} x {channels} features, but the next "
                f"one, {following!r}, takes {width}; pass the entries of each layer on "
                "their own"
            )
        joined[name] = width == heads * channels
    return joined


def _attention_shape(name: str, weights: Mapping[str, Tensor]) -> tuple[int, int]:
    attention = weights["attn"] if "attn" in weights else weights["attn_l"]
    if attention.dim() != 3:
        raise ValueError(
            f"the attention vector of layer {name!r} has shape "
            f"{list(attention.shape)}, not [1, heads, channels] as in DGL"
        )
    return attention.size(1), attention.size(2)


def _layout(name: str, weights: Mapping[str, Tensor]) -> dict[str, str]:
    """How the layer names its weights."""
    for layout in _LAYOUTS:
        others = weights.keys() - layout.keys() - {*_OUTPUT}
        if layout is _GATV2:
            others -= _GATV2_BIASES.keys()
        if layout.keys() <= weights.keys() and not others:
            return layout
    raise ValueError(
        f"layer {name!r} has the weights {', '.join(sorted(weights))}, which is "
        "neither a GATConv nor a GATv2Conv of DGL"
    )


def _input_widths(name: str, weights: Mapping[str, Tensor]) -> tuple[int, int]:
    maps = [k for k in _layout(name, weights) if k.startswith("fc")]
    return weights[maps[0]].size(-1), weights[maps[-1]].size(-1)


def _make_layer(
    name: str,
    weights: Mapping[str, Tensor],
    concat: bool,
    adds_input: bool,
    settings: Mapping[str, Any],
) -> AttentionLayer:
    layout = _layout(name, weights)
    heads, channels = _attention_shape(name, weights)
    src, dst = _input_widths(name, weights)
    width = heads * channels
    residual = weights.get("res_fc.weight")
    attention = next(iter(weights[k] for k in layout))
    if residual is None and adds_input and dst == width:
        residual = torch.eye(width, dtype=attention.dtype, device=attention.device)
    is_v2 = layout is _GATV2
    biases = {k: v for k, v in _GATV2_BIASES.items() if k in weights}
    bias = sum(weights[k] for k in ("bias", "res_fc.bias") if k in weights)
    has_bias = isinstance(bias, Tensor) or bool(biases)
    arguments: dict[str, Any] = dict(
        settings,
        in_channels=(src, dst) if src != dst or layout is _TWO_MAPS else src,
        out_channels=channels,
        heads=heads,
        concat=concat,
        residual=residual is not None,
        bias=has_bias,
    )
    if is_v2:
        maps = (weights["fc_src.weight"], weights["fc_dst.weight"])
        arguments["share_weights"] = src == dst and torch.equal(*maps)
    layer = make_layer(TemperGATv2Conv if is_v2 else TemperGATConv, arguments)
    layer.to(device=attention.device, dtype=attention.dtype)
    values = {ours: weights[theirs] for theirs, ours in (layout | biases).items()}
    if residual is not None:
        values["res.weight"] = _of_heads(residual, heads, concat)
    if isinstance(bias, Tensor):
        values["bias"] = _of_heads(bias, heads, concat)
    elif has_bias:
        values["bias"] = torch.zeros_like(layer.bias)
    for key, value in values.items():
        parameter = layer.get_parameter(key)
        if parameter.shape != value.shape:
            raise ValueError(
                f"a weight of layer {name!r} has shape {list(value.shape)}, but its "
                f"attention vectors ask for {list(parameter.shape)}"
            )
        parameter.copy_(value)
    if layer.gate is not None:
        start_gate(layer)
    return layer


def _of_heads(value: Tensor, heads: int, concat: bool) -> Tensor:
    """What is added to the output of all heads, as it is added after their mean."""
    return value if concat else value.view(heads, -1, *value.shape[1:]).mean(0)
