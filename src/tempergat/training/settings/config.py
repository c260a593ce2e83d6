"""The settings of a run, checked."""

from __future__ import annotations

from typing import Any, Self, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from tempergat.base import suggest_one_of, validated
from tempergat.data import Dataset
from tempergat.nn import BACKBONES, METHODS
from tempergat.training.settings.fields import (
    LATER_SETTINGS,
    PARTS,
    OfAttention,
    OfGate,
    OfTemperature,
    OfTraining,
    SelectionRule,
    Settings,
)

SELECTION_RULES: tuple[SelectionRule, ...] = get_args(SelectionRule)


class FrozenSettings(BaseModel):
    """Settings that cannot be changed, and take no unknown names."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class RunConfig(Settings, FrozenSettings):
    """Everything that determines a method's runs, except the seed."""

    @field_validator("fanout", mode="before")
    @classmethod
    def _list_to_tuple(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        known = self.method in METHODS
        if self.source_hash is None and not known:
            raise ValueError(
                f"unknown method {self.method!r}; "
                f"{suggest_one_of(self.method, METHODS)}"
            )
        if self.source_hash is not None and known:
            raise ValueError(f"{self.method!r} is a built-in method; rename yours")
        if self.hidden_channels % self.heads:
            width, heads = self.hidden_channels, self.heads
            nearest = max(1, round(width / heads)) * heads
            most = min(heads, 1000)
            divisor = next(n for n in range(most, 0, -1) if width % n == 0)
            raise ValueError(
                f"hidden is {width} and heads is {heads}, but hidden is the width of a "
                "layer, all heads together, and must be divisible by heads; give "
                f"hidden {nearest} or heads {divisor}"
            )
        if self.training != "sampled":
            return self
        if self.fanout is None or self.batch_size is None:
            raise ValueError(
                "training: sampled needs fanout and batch_size, like fanout: [15, 10] "
                "and batch_size: 1024"
            )
        if not self.fanout or 0 in self.fanout:
            raise ValueError(
                f"fanout is {list(self.fanout)}; give how many neighbours to draw in "
                "each hop, -1 for all"
            )
        if len(self.fanout) > self.num_layers and self.source_hash is None:
            raise ValueError(
                f"fanout {list(self.fanout)} has {len(self.fanout)} hops, but a model "
                f"of {self.num_layers} layers reaches no further than as many; give at "
                f"most {self.num_layers} numbers"
            )
        return self

    def model_arguments(self) -> dict[str, Any]:
        """Arguments of `build_model`, except the numbers of features and classes."""
        return {
            "method": self.method,
            "hidden_channels": self.hidden_channels,
            "num_layers": self.num_layers,
            "heads": self.heads,
            "out_heads": self.out_heads,
            "dropout": self.feature_dropout,
            "attention_dropout": self.attention_dropout,
            "act": self.act,
            "norm": self.norm,
            "jk": self.jk,
            "residual": self.residual,
            "init_temp": self.init_temp,
            "gate_bias_init": self.gate_bias_init,
            "gate_last_layer": self.gate_last_layer,
            "bias_before_norm": self.bias_before_norm,
        }

    @model_serializer(mode="wrap")
    def _without_later_settings(
        self, serialize: SerializerFunctionWrapHandler
    ) -> dict[str, Any]:
        # Hashes of settings written before there were these fields must stay the same.
        values: dict[str, Any] = serialize(self)
        for name in LATER_SETTINGS:
            if values[name] == type(self).model_fields[name].default:
                del values[name]
        return values

    def with_changes(self, **changes: Any) -> RunConfig:
        """A copy with some settings changed, validated again.

        Raises:
            UserError: A setting is unknown or out of its range.
        """
        values = {**self.model_dump(), **changes}
        return validated(RunConfig, values, "settings")


def has_setting(method: str, name: str) -> bool:
    """Whether a method, or a user's own module, has a setting."""
    part = PARTS[name]
    if method not in METHODS or part is OfTraining:
        return part is OfTraining
    row = METHODS[method]
    has: dict[type, bool] = {
        OfAttention: BACKBONES[row.backbone].has_attention,
        OfTemperature: row.temperature is not None,
        OfGate: row.gate is not None,
    }
    return has.get(part, True)


def settings_on(config: RunConfig, graph: Dataset) -> RunConfig:
    """The settings of runs on a graph, once it is read.

    Columns of numbers in tables are scaled, unless the settings divide each node's
    features by their sum. Attention takes the weights of edges, if there are any.
    No layer that batch norm follows has a bias.
    """
    changes = {}
    has_bias = config.norm != "batch" or config.source_hash is not None
    if config.bias_before_norm != has_bias:
        changes["bias_before_norm"] = has_bias
    if graph.scaling and not config.normalize_features:
        changes["scale_features"] = True
    method = METHODS.get(config.method)
    if graph.edge_weight_name is not None and method is not None:
        changes["edge_weight"] = BACKBONES[method.backbone].has_attention
    return config.with_changes(**changes) if changes else config
