"""Building a node classifier of one of the methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from tempergat.base import did_you_mean
from tempergat.nn.conv._inputs import check_count, check_rate
from tempergat.nn.methods import METHODS, Method
from tempergat.nn.models import BACKBONES, Backbone, NodeClassifier, fork_generator
from tempergat.nn.skip import ResidualKind


def build_model(
    method: str,
    in_channels: int,
    hidden_channels: int,
    out_channels: int,
    num_layers: int = 2,
    heads: int = 8,
    *,
    out_heads: int = 1,
    dropout: float = 0.0,
    attention_dropout: float = 0.0,
    act: str | Callable[..., Any] | None = "elu",
    norm: str | Callable[..., Any] | None = None,
    jk: str | None = None,
    residual: ResidualKind = False,
    init_temp: float = 1.0,
    gate_bias_init: float = 2.0,
    gate_last_layer: bool = True,
    bias_before_norm: bool = True,
    **kwargs: Any,
) -> NodeClassifier:
    """Builds a node classifier of one of the methods, similar to PyG's ``BasicGNN``.

    Parameters that two methods share start equal when torch's seed is equal.

    Args:
        method: A key of ``METHODS``.
        in_channels: Features per node; -1 to take it from the first input.
        hidden_channels: Total width of a hidden layer, all heads together.
        out_channels: Number of classes.
        num_layers: Number of layers.
        heads: Attention heads of a hidden layer (not used by ``gcn`` and ``mlp``).
        out_heads: Attention heads of the output layer, averaged.
        dropout: Dropout rate on the input of every layer.
        attention_dropout: Dropout rate on the attention weights.
        act: Activation between layers.
        norm: Normalisation between layers.
        jk: Jumping-knowledge mode: None, "last", "cat", "max" or "lstm".
        residual: Whether layers add a linear map of their input; ``"gate"`` for a
            learned share of it for each node. Those of ``transformer`` always add
            one, for they have no self-loops; ``"gate"`` is their ``beta``.
        init_temp: Initial value of learnable temperatures.
        gate_bias_init: Initial value of the gates' biases, as in the layers. The
            recipes of `tempergat compare` have the paper's 0.
        gate_last_layer: Whether the layer that gives the class scores has a gate too,
            in gated methods; with ``jk`` a linear map gives them, without a gate.
        bias_before_norm: Whether layers that batch norm follows have a bias, which
            changes no output in training. Checkpoints of before have it.
        **kwargs: Further arguments of the attention layers.

    Raises:
        ValueError: There is no such method, or an argument does not fit it.
    """
    _check_settings(num_layers, heads, out_heads, dropout, jk)
    facts, backbone = _find_method(method, hidden_channels, heads, kwargs)

    def layer(inputs: int, outputs: int, last: bool) -> nn.Module:
        if not backbone.has_attention:
            return backbone.layer(inputs, outputs, residual=residual)
        return backbone.layer(
            inputs,
            outputs if last else outputs // heads,
            out_heads if last else heads,
            concat=not last,
            dropout=attention_dropout,
            temperature=facts.temperature,
            init_temp=init_temp,
            gate=None if last and not gate_last_layer else facts.gate,
            gate_bias_init=gate_bias_init,
            **{**_skip_options(facts, residual), **kwargs},
        )

    outputs = out_channels if jk is None else hidden_channels
    widths = [in_channels] + [hidden_channels] * (num_layers - 1)
    # The constructors draw from a forked generator: a gate would shift all later draws.
    # `reset_parameters` draws the initial values.
    with fork_generator():
        convs = [layer(width, hidden_channels, False) for width in widths[:-1]]
        convs.append(layer(widths[-1], outputs, jk is None))
        sizes = (hidden_channels, out_channels)
        model = NodeClassifier(
            facts, convs, *sizes, dropout, act, norm, jk, bias_before_norm
        )
    model.reset_parameters()
    return model


def _skip_options(method: Method, residual: ResidualKind) -> dict[str, Any]:
    """The arguments of an attention layer that say what it adds to its output."""
    if method.always_skips:
        return {"beta": True} if residual == "gate" else {}
    return {"residual": residual}


def _check_settings(
    num_layers: int, heads: int, out_heads: int, dropout: float, jk: str | None
) -> None:
    check_count("num_layers", num_layers)
    check_count("heads", heads)
    check_count("out_heads", out_heads)
    check_rate("dropout", dropout)
    if jk not in (None, "last", "cat", "max", "lstm"):
        raise ValueError(f"jk must be None, 'last', 'cat', 'max' or 'lstm', got {jk!r}")


def _find_method(
    method: str, hidden_channels: int, heads: int, others: dict[str, Any]
) -> tuple[Method, Backbone]:
    """A method and its backbone, if they can have these settings."""
    if method not in METHODS:
        raise ValueError(
            f"unknown method {method!r}; {did_you_mean(method, METHODS)}methods are "
            f"{', '.join(METHODS)}"
        )
    backbone = BACKBONES[METHODS[method].backbone]
    if others and not backbone.has_attention:
        raise ValueError(
            f"{method} has no attention layers and takes no {', '.join(others)}; leave "
            f"it out, or use an attention method"
        )
    if backbone.has_attention and hidden_channels % heads != 0:
        raise ValueError(
            f"hidden_channels={hidden_channels} is the total width of a layer and "
            f"must be divisible by heads={heads}"
        )
    return METHODS[method], backbone
