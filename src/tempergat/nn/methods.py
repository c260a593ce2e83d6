"""The compared methods, in one table."""

from typing import Literal, NamedTuple

from tempergat.nn.attention_layer import Gate


class Method(NamedTuple):
    """One row of the paper's table of methods."""

    backbone: Literal["gcn", "gat", "gatv2"]
    temperature: Literal["layer"] | None
    gate: Gate
    # Whether the paper reports results for it.
    in_paper: bool = True


METHODS: dict[str, Method] = {
    "gcn": Method("gcn", None, None),
    "gat": Method("gat", None, None),
    "gatv2": Method("gatv2", None, None),
    "gated": Method("gat", None, "post"),
    "temp_only": Method("gat", "layer", None),
    "temp_gated": Method("gat", "layer", "post"),
    "gated_temp": Method("gat", "layer", "first"),
    "gated_v2": Method("gatv2", None, "post"),
    "temp_only_v2": Method("gatv2", "layer", None),
    "temp_gated_v2": Method("gatv2", "layer", "post"),
    "gated_temp_v2": Method("gatv2", "layer", "first"),
    "gated_first": Method("gat", None, "first", in_paper=False),
    "gated_first_v2": Method("gatv2", None, "first", in_paper=False),
}
