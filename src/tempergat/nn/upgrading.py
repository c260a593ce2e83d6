"""Replaces PyG's attention layers inside any model and keeps their weights."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch_geometric.nn import GATConv, GATv2Conv, TransformerConv
from torch_geometric.nn.dense.linear import is_uninitialized_parameter

from tempergat.nn.conv import plain
from tempergat.nn.conv._base import AttentionLayer
from tempergat.nn.conv.gat import TemperGATConv
from tempergat.nn.conv.gatv2 import TemperGATv2Conv
from tempergat.nn.conv.transformer import TemperTransformerConv
from tempergat.nn.gate import GateKind, gate_kind
from tempergat.nn.temperature import TemperatureKind, set_theta
from tempergat.ops import is_compiled


def upgrade(
    model: nn.Module,
    temperature: TemperatureKind = "layer",
    gate: GateKind | bool = "post",
    *,
    init_temp: float = 1.0,
    residual: bool = False,
) -> list[nn.Parameter]:
    """Replaces every plain attention layer in a model, in place.

    They are ``GATConv``, ``GATv2Conv`` and ``TransformerConv`` of PyG and of
    ``tempergat.nn``.

    With ``init_temp=1`` the model computes the same function as before, and the new
    parts can learn from there. A gate starts at sigmoid(2), and the trained weights are
    rescaled to compensate; a residual starts at zero. Existing parameters stay the same
    objects, so an optimizer that holds them keeps working; add the new ones to it::

        optimizer.add_param_group({"params": upgrade(model)})

    Args:
        model: Any module that contains such layers, at any depth.
        temperature: As in the layers.
        gate: As in the layers.
        init_temp: Initial value of a learnable temperature.
        residual: Whether layers without a residual (``root_weight`` of a
            ``TransformerConv``) get one.

    Returns:
        The new parameters; none where every layer was left as it is, with a warning.

    Raises:
        ValueError: The model has no such layer, or all of them were upgraded before;
            it is itself such a layer and cannot be replaced in place; a layer is lazy
            and has not seen an input yet; a layer was compiled on its own; or, for a
            gate, weights cannot be rescaled because another module shares them or they
            are parametrised.
    """
    if type(model) in _REPLACEMENTS:
        raise ValueError(
            f"the model is itself a {type(model).__name__}; put it into a module, for "
            f"example torch.nn.Sequential or PyG's, so that it can be replaced there"
        )
    if not isinstance(residual, bool):
        raise ValueError(
            f"residual must be True or False, got {residual!r}: a gated skip would "
            "change what the model computes"
        )
    gate = gate_kind(gate)
    _refuse_nothing_to_do(model)
    places = _find(model)
    layers = list({id(old): old for _, _, old in places}.values())
    for parent, _, layer in places:
        _refuse_compiled_or_lazy(parent, layer)
    for layer in layers:
        if gate is not None:
            _refuse_what_cannot_be_rescaled(layer, gate, model)
    known = {id(parameter) for parameter in model.parameters()}
    replaced: dict[int, AttentionLayer] = {}
    for parent, name, old in places:
        if id(old) not in replaced:
            with torch.inference_mode(False):
                replaced[id(old)] = _replace(
                    old,
                    temperature=temperature,
                    gate=gate,
                    init_temp=init_temp,
                    residual=residual,
                )
        parent._modules[name] = replaced[id(old)]
    return [
        parameter
        for layer in replaced.values()
        for parameter in layer.parameters()
        if id(parameter) not in known
    ]


_REPLACEMENTS: dict[type[nn.Module], type[AttentionLayer]] = {
    **dict.fromkeys((GATConv, plain.GATConv), TemperGATConv),
    **dict.fromkeys((GATv2Conv, plain.GATv2Conv), TemperGATv2Conv),
    **dict.fromkeys((TransformerConv, plain.TransformerConv), TemperTransformerConv),
}
_PLAIN = tuple(_REPLACEMENTS)
_OF_V2 = GATv2Conv | TemperGATv2Conv
_TRANSFORMERS = TransformerConv | TemperTransformerConv


def _find(model: nn.Module) -> list[tuple[nn.Module, str, nn.Module]]:
    places = []
    for path, parent in model.named_modules():
        for name, child in parent._modules.items():
            if not isinstance(child, _PLAIN):
                continue
            own = {n for n in child.__dict__ if callable(getattr(type(child), n, None))}
            patched = own - _set_by_explain(child)
            if type(child) in _REPLACEMENTS and not patched:
                places.append((parent, name, child))
                continue
            problem = "is a subclass of a plain layer"
            if patched:
                problem = f"has its own {', '.join(sorted(patched))}()"
            warnings.warn(
                f"{path}{'.' if path else ''}{name}, a {type(child).__name__}, "
                f"{problem} and was left as it is: an upgrade could lose its changes",
                stacklevel=3,
            )
    return places


def _set_by_explain(layer: Any) -> set[str]:
    """Methods that PyG put on a layer whose `explain` was set; they are its own."""
    function = getattr(layer.__dict__.get("propagate"), "__func__", None)
    names = ("_orig_propagate", "_jinja_propagate")
    known = [getattr(type(layer), name, None) for name in names]
    return {"propagate"} if function is not None and function in known else set()


def _refuse_nothing_to_do(model: nn.Module) -> None:
    if any(isinstance(module, _PLAIN) for module in model.modules()):
        return
    name = type(model).__name__
    if any(isinstance(module, AttentionLayer) for module in model.modules()):
        raise ValueError(
            f"the attention layers of {name} are tempergat's already; call upgrade "
            f"once, on a model with PyG's GATConv, GATv2Conv or TransformerConv"
        )
    raise ValueError(
        f"no GATConv, GATv2Conv or TransformerConv layer was found in {name}; give a "
        f"model that contains PyG's layers"
    )


def _refuse_compiled_or_lazy(parent: nn.Module, layer: nn.Module) -> None:
    # Compiled code would still call the old layer.
    if is_compiled(parent) or is_compiled(layer):
        raise ValueError(
            f"{layer} was compiled on its own; upgrade the model first, then compile "
            f"the new layer"
        )
    for name, parameter in layer.named_parameters():
        unused = name.startswith(_unused(layer))
        if is_uninitialized_parameter(parameter) and not unused:
            raise ValueError(
                f"{layer} has not seen an input yet ({name} is uninitialised); run the "
                f"model once, then upgrade it"
            )


# Arguments that a layer has under the same name.
_SHARED = ("out_channels", "heads", "concat", "dropout", "edge_dim", "flow")
_OF_GAT = (*_SHARED, "negative_slope", "add_self_loops", "fill_value")


def _unused(layer: Any) -> tuple[str, ...]:
    """Maps that PyG's layer has and never calls."""
    without = isinstance(layer, _TRANSFORMERS) and not layer.root_weight
    return ("lin_skip",) if without else ()


def _replace(old: Any, residual: bool, **settings: Any) -> AttentionLayer:
    arguments: dict[str, Any] = {"in_channels": _channels(old), **settings}
    arguments["cache"] = getattr(old, "cache", True)
    if isinstance(old, _TRANSFORMERS):
        arguments |= {name: getattr(old, name) for name in (*_SHARED, "beta")}
        arguments["bias"] = old.lin_key.bias is not None
        arguments["root_weight"] = old.root_weight or residual
    else:
        arguments |= {name: getattr(old, name) for name in _OF_GAT}
        arguments["bias"] = old.bias is not None
        arguments["residual"] = old.residual or residual
    if isinstance(old, _OF_V2):
        arguments["share_weights"] = old.share_weights
    # Its weights will be replaced: torch's generator does not move.
    with torch.random.fork_rng(devices=[]):
        new = _REPLACEMENTS[type(old)](**arguments)
    # PyG's GATConv ignores edge_attr without edge_dim; its GATv2Conv raises an error.
    new.ignores_edge_attr = isinstance(old, GATConv | plain.GATConv)
    res = new.skip_map()
    for parameter in () if res is None else res.parameters():
        nn.init.zeros_(parameter)
    _adopt(old, new)
    if _unused(old) and residual:
        new.lin_skip = res
    if new.gate is not None:
        _start_gate(new)
    return new


def _channels(old: Any) -> int | tuple[int, int]:
    """The layer's input widths, also where it was made lazily."""
    names = ("lin_src", "lin_dst")
    if isinstance(old, _OF_V2):
        names = ("lin_l", "lin_r")
    elif isinstance(old, _TRANSFORMERS):
        names = ("lin_key", "lin_query")
    elif isinstance(old.in_channels, int):
        return int(old.lin.in_channels)
    source, target = (int(getattr(old, name).in_channels) for name in names)
    return source if isinstance(old.in_channels, int) else (source, target)


def _adopt(old: Any, new: AttentionLayer) -> None:
    """Moves parameters, modules, buffers, hooks and attributes to the new layer."""
    reference = next(old.parameters())
    new.to(device=reference.device, dtype=reference.dtype)
    # As exact as this type allows.
    if new.theta is not None:
        set_theta(new.theta, new.init_temp)
    # A pruned weight is not a parameter; a hook computes it before each call.
    own = {name for name, parameter in new._parameters.items() if parameter is not None}
    pruned = own - set(old._parameters) - {"theta"}
    for name in pruned:
        del new._parameters[name]
    new._modules.update(old._modules)
    # What a layer lacks has a name and is None, like a residual or a temperature.
    for kind in ("_parameters", "_buffers"):
        kept = getattr(old, kind).items()
        getattr(new, kind).update({name: x for name, x in kept if x is not None})
    new._non_persistent_buffers_set |= old._non_persistent_buffers_set
    new.aggr = old.aggr
    skipped = new.__dict__.keys() | _set_by_explain(old)
    for name in old.__dict__.keys() - skipped:
        setattr(new, name, old.__dict__[name])
    if old.explain is not None:
        new.explain = old.explain
    # The dictionaries themselves, so that a user's handles can still remove hooks.
    for name in old.__dict__:
        if "hook" in name:
            setattr(new, name, old.__dict__[name])
    new.training = old.training
    new.decomposed_layers = old.decomposed_layers


# Aggregations with aggr(c * m) = c * aggr(m) for c > 0.
_HOMOGENEOUS = {"add", "sum", "mean", "max", "min"}


def _refuse_what_cannot_be_rescaled(
    layer: Any, gate: GateKind, model: nn.Module
) -> None:
    aggregations = layer.aggr if isinstance(layer.aggr, list) else [layer.aggr]
    if not set(aggregations) <= _HOMOGENEOUS:
        raise ValueError(
            f"{layer} aggregates by {layer.aggr}, which a gate would change; upgrade "
            f"it with gate=None"
        )
    owners: dict[int, int] = {}
    for module in model.modules():
        for parameter in module._parameters.values():
            owners[id(parameter)] = owners.get(id(parameter), 0) + 1
    for owner, name, _ in _rescaled(layer, gate):
        parameter = owner._parameters.get(name)
        if parameter is None or owners[id(parameter)] > 1:
            problem = "parametrised" if parameter is None else "shared with others"
            raise ValueError(
                f"{name} of {owner} is {problem}, so a gate cannot be added without "
                f"changing the model; upgrade it with gate=None, or give the module "
                f"a weight of its own first"
            )


def _rescaled(layer: Any, gate: GateKind) -> Iterator[tuple[nn.Module, str, int]]:
    """Which weights to multiply by which power of the new gate to compensate for it."""
    if isinstance(layer, _TRANSFORMERS):
        powers = {"lin_value": -1}
        if gate == "first":
            powers |= {"lin_key": -1, "lin_query": -1}
        elif layer.lin_edge is not None:
            # Its map is that of the logits, too.
            powers |= {"lin_edge": -1, "lin_key": -1, "lin_query": 1}
        for name, power in powers.items():
            yield from _parts(getattr(layer, name), power)
        return
    v2 = isinstance(layer, _OF_V2)
    names = ["lin_l", "lin_r"] if v2 else ["lin", "lin_src", "lin_dst"]
    if gate != "first" and v2:
        names.append("lin_edge")
    projections = [getattr(layer, name) for name in names]
    for projection in {id(p): p for p in projections if p is not None}.values():
        yield from _parts(projection, -1)
    if gate != "first":
        for name in ("att",) if v2 else ("att_src", "att_dst"):
            yield layer, name, 1


def _parts(lin: Any, power: int) -> Iterator[tuple[nn.Module, str, int]]:
    yield lin, "weight", power
    if lin.bias is not None:
        yield lin, "bias", power


@torch.no_grad()
def _start_gate(layer: Any) -> None:
    """Sets the gate to its initial bias and rescales the weights to compensate."""
    for name in ("lin_gate", "lin_gate_src", "lin_gate_dst"):
        if hasattr(layer, name):
            getattr(layer, name).weight.zero_()
            getattr(layer, name).bias.fill_(layer.gate_bias_init)
    opening = 1.0 / (1.0 + math.exp(-layer.gate_bias_init))
    for owner, name, power in _rescaled(layer, layer.gate):
        getattr(owner, name).mul_(opening**power)
