"""The compared methods, in one table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from tempergat.base import UserError, suggest_one_of

# This table is shown without torch.
if TYPE_CHECKING:
    from tempergat.nn.gate import GateKind
    from tempergat.nn.models import BackboneName


class Method(NamedTuple):
    """One row of the table of methods.

    Attributes:
        backbone: A key of ``BACKBONES``.
        temperature: One learnable temperature per layer, one per head, or none.
        gate: The feature gate: on the aggregated output, by channel or by head, on the
            projected features, or none.
        in_paper: Whether the paper reports results for it.
    """

    backbone: BackboneName
    temperature: Literal["layer", "head"] | None
    gate: GateKind
    in_paper: bool = True

    @property
    def always_skips(self) -> bool:
        """Whether its layers always add a linear map of their input, as PyG's do."""
        return self.backbone == "transformer"

    @property
    def description(self) -> str:
        """What it is in plain words, in the order in which features pass the parts."""
        parts = [_BACKBONE_WORDS.get(self.backbone, self.backbone)]
        if self.gate == "first":
            parts.append("gate before attention")
        if self.temperature is not None:
            each = " per head" if self.temperature == "head" else ""
            parts.append(f"temperature{each}")
        if self.gate in ("post", "head"):
            each = " per head" if self.gate == "head" else ""
            parts.append(f"gate{each} after attention")
        return " + ".join(parts)


_BACKBONE_WORDS: dict[str, str] = {
    "gcn": "GCN",
    "gat": "GAT",
    "gatv2": "GATv2",
    "transformer": "graph transformer",
    "mlp": "no edges (MLP)",
}

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
    "head_gated": Method("gat", None, "head", in_paper=False),
    "head_gated_v2": Method("gatv2", None, "head", in_paper=False),
    "temp_gated_head": Method("gat", "head", "post", in_paper=False),
    "temp_gated_head_v2": Method("gatv2", "head", "post", in_paper=False),
    "transformer": Method("transformer", None, None, in_paper=False),
    "gated_transformer": Method("transformer", None, "post", in_paper=False),
    "temp_only_transformer": Method("transformer", "layer", None, in_paper=False),
    "temp_gated_transformer": Method("transformer", "layer", "post", in_paper=False),
    "mlp": Method("mlp", None, None, in_paper=False),
}


def find_method(name: str) -> Method:
    """The method of a name.

    Raises:
        UserError: There is none.
    """
    if name not in METHODS:
        raise UserError(
            f"unknown method {name!r}; {suggest_one_of(name, list(METHODS))}"
        )
    return METHODS[name]


def description_of(name: str) -> str | None:
    """What a method is in plain words; None for a user's own method."""
    return METHODS[name].description if name in METHODS else None
