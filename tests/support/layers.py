"""The attention layers by name, as tests of all of them make them."""

from typing import Any

from torch_geometric.nn import GATConv, GATv2Conv, TransformerConv

from tempergat.nn import TemperGATConv, TemperGATv2Conv, TemperTransformerConv

# What TransformerConv has no argument for: it adds no self-loops and has a skip.
_NOT_OF_TRANSFORMERS = ("add_self_loops", "negative_slope", "residual")


def without_unknown(options: dict[str, Any]) -> dict[str, Any]:
    """The options of a GAT layer that a transformer has too."""
    return {k: value for k, value in options.items() if k not in _NOT_OF_TRANSFORMERS}


def _transformer(*args: Any, **options: Any) -> TemperTransformerConv:
    return TemperTransformerConv(*args, **without_unknown(options))


def _pyg_transformer(*args: Any, **options: Any) -> TransformerConv:
    return TransformerConv(*args, **without_unknown(options))


LAYERS = {
    "gat": TemperGATConv,
    "gatv2": TemperGATv2Conv,
    "transformer": _transformer,
}
PYG_LAYERS = {"gat": GATConv, "gatv2": GATv2Conv, "transformer": _pyg_transformer}
# A map of the sources' features.
FIRST_MAPS = {"gat": "lin", "gatv2": "lin_l", "transformer": "lin_key"}
# The method with temperature and gate.
METHOD_OF = {
    "gat": "temp_gated",
    "gatv2": "temp_gated_v2",
    "transformer": "temp_gated_transformer",
}
