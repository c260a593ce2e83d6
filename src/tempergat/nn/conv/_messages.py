"""When a layer must build the messages of all edges, as PyG does."""

from typing import Any

# PyG's dictionaries of hooks, and the method that each belongs to.
_HOOKS = {
    f"_{method}_forward_{when}": method
    for method in ("propagate", "message", "aggregate", "edge_update")
    for when in ("pre_hooks", "hooks")
}
_OVERRIDABLE_METHODS = ("message", "aggregate", "update", "edge_update")


def why_messages(layer: Any) -> str | None:
    """Why a layer must build every message; None if it need not.

    Args:
        layer: An attention layer.
    """
    own = layer.__dict__
    for hooks, method in _HOOKS.items():
        if own[hooks]:
            return f"a {method} hook is registered"
    if layer.explain:
        return "an explainer is active"
    if layer.aggr not in ("add", "sum"):
        return f"aggr is {layer.aggr!r}, not 'add'"
    if layer.decomposed_layers != 1:
        return f"decomposed_layers is {layer.decomposed_layers}"
    for name in _OVERRIDABLE_METHODS:
        if name in own:
            return f"{name}() was replaced on this instance"
        owner = next(c for c in type(layer).__mro__ if name in c.__dict__)
        if not owner.__module__.startswith(("tempergat.nn", "torch_geometric.nn")):
            return f"{owner.__name__} overrides {name}()"
    return None
