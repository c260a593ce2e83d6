"""A layer as text: what it was made with."""

from typing import Any

# Shown only where a layer differs from them.
_DEFAULTS = {
    "concat": True,
    "dropout": 0.0,
    "add_self_loops": True,
    "edge_dim": None,
    "residual": False,
}


def describe(layer: Any) -> str:
    """The call that makes such a layer.

    Args:
        layer: An attention layer.
    """
    found = {name: getattr(layer, name) for name in _DEFAULTS}
    shown = {
        "heads": layer.heads,
        **{name: value for name, value in found.items() if value != _DEFAULTS[name]},
        "temperature": layer.softmax_temperature.kind,
        "gate": layer.gate,
    }
    settings = ", ".join(f"{name}={value!r}" for name, value in shown.items())
    channels = f"{layer.in_channels}, {layer.out_channels}"
    return f"{type(layer).__name__}({channels}, {settings})"
