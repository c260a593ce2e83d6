"""The settings of a run, and the recipes they come from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from tempergat.base import UserError, did_you_mean, read_yaml
from tempergat.nn import BACKBONES, METHODS

SelectionRule = Literal["best_val_accuracy", "last_epoch", "best_val_loss"]
SELECTION_RULES: tuple[SelectionRule, ...] = (
    "best_val_accuracy",
    "last_epoch",
    "best_val_loss",
)

Activation = Literal[
    "celu",
    "elu",
    "gelu",
    "hardswish",
    "leaky_relu",
    "mish",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "softplus",
    "softsign",
    "tanh",
]
Normalisation = Literal["batch", "graph", "instance", "layer", "pair"]

# Far above what can be trained, and within what torch can count.
Epochs = Annotated[int, Field(gt=0, le=10**6)]
Layers = Annotated[int, Field(gt=0, le=10**3)]
Count = Annotated[int, Field(gt=0, le=10**14)]
Rate = Annotated[float, Field(ge=0.0, lt=1.0)]
Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Temperature = Annotated[float, Field(gt=0.0, le=1e6)]
# A gate is fully open or shut long before these.
GateBias = Annotated[float, Field(ge=-100.0, le=100.0)]


class _Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _Settings(_Frozen):
    """What every method's settings hold."""

    epochs: Epochs
    num_layers: Layers
    act: Activation | None
    norm: Normalisation | None
    residual: bool
    jk: Literal["last", "cat", "max"] | None
    feature_dropout: Rate
    learning_rate: Positive
    weight_decay: NotNegative
    decay_bias: bool
    normalize_features: bool
    selection: SelectionRule
    fanout: tuple[Count, ...] | None = None
    batch_size: Count | None = None
    eval_batch_size: Count | None = None

    @field_validator("fanout", mode="before")
    @classmethod
    def _tuple(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value


class RunConfig(_Settings):
    """Everything that determines a method's runs, except the seed.

    Attributes:
        method: A key of ``METHODS``.
        training: Whether a step sees the whole graph or sampled neighbourhoods.
        epochs: Number of epochs; with full training, of steps.
        num_layers: Number of layers.
        heads: Attention heads of a hidden layer.
        hidden_channels: Total width of a hidden layer, all heads together.
        out_heads: Attention heads of the output layer, averaged.
        act: Activation between layers.
        norm: Normalisation between layers.
        residual: Whether layers add a linear map of their input.
        jk: Jumping-knowledge mode.
        feature_dropout: Dropout rate on the input of every layer.
        attention_dropout: Dropout rate on the attention weights.
        learning_rate: Adam's.
        weight_decay: Factor of the L2 term in Adam's gradient.
        decay_temperature: Whether the temperatures' theta is decayed.
        decay_gate: Whether the gates' weights and biases are decayed.
        decay_bias: Whether all other biases are decayed.
        gate_penalty: Factor of the sum over layers of the mean gate, in the loss.
        init_temp: Where temperatures start.
        gate_bias_init: Where the gates' biases start.
        normalize_features: Whether each node's features are divided by their sum.
        selection: The rule that chooses the epoch to report.
        fanout: Neighbours per hop, for sampled training.
        batch_size: Nodes per step, for sampled training.
        eval_batch_size: Nodes per evaluation batch, for sampled training.
    """

    method: str
    training: Literal["full", "sampled"] = "full"
    heads: Count = 1
    hidden_channels: Count
    out_heads: Count = 1
    attention_dropout: Rate = 0.0
    decay_temperature: bool = True
    decay_gate: bool = True
    gate_penalty: NotNegative = 0.0
    init_temp: Temperature = 1.0
    gate_bias_init: GateBias = 0.0

    @field_validator("method")
    @classmethod
    def _known(cls, method: str) -> str:
        if method not in METHODS:
            raise ValueError(f"unknown method; {_suggest(method, list(METHODS))}")
        return method

    @model_validator(mode="after")
    def _whole_heads(self) -> Self:
        if self.hidden_channels % self.heads:
            raise ValueError(
                f"hidden_channels={self.hidden_channels} is the total width of a layer "
                f"and must be divisible by heads={self.heads}"
            )
        return self

    def hash(self) -> str:
        """The sha256 of the settings as canonical JSON."""
        values = self.model_dump(mode="json")
        text = json.dumps(values, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def with_changes(self, **changes: Any) -> RunConfig:
        """The same settings with some of them changed, checked again.

        Raises:
            UserError: A setting is unknown or out of its range.
        """
        values = {**self.model_dump(), **changes}
        return _validated(RunConfig, values, "settings")


class AttentionBlock(_Settings):
    """A recipe's settings of the attention methods; the width in one of two ways."""

    heads: Count
    channels_per_head: Count | None = None
    hidden_channels: Count | None = None
    out_heads: Count
    attention_dropout: Rate
    decay_temperature: bool
    decay_gate: bool
    gate_penalty: NotNegative
    init_temp: Temperature
    gate_bias_init: GateBias

    @model_validator(mode="after")
    def _one_width(self) -> Self:
        if (self.channels_per_head is None) == (self.hidden_channels is None):
            raise ValueError("give either channels_per_head or hidden_channels")
        return self


class GcnBlock(_Settings):
    """A recipe's settings of gcn and mlp."""

    hidden_channels: Count


class Recipe(_Frozen):
    """The settings of all methods on one dataset.

    Attributes:
        dataset: Name in the catalogue; None for graphs of one's own.
        runs: How many seeds a full study has.
        metric: What is reported.
        training: Whether a step sees the whole graph or sampled neighbourhoods.
        attention: Settings of all attention methods.
        gatv2: Settings of the methods on gatv2, where they differ.
        gcn: Settings of gcn and mlp.
    """

    dataset: str | None
    runs: Count
    metric: Literal["accuracy", "micro_f1"]
    training: Literal["full", "sampled"]
    attention: AttentionBlock
    gatv2: AttentionBlock | None = None
    gcn: GcnBlock

    def config_for(self, method: str) -> RunConfig:
        """The settings of one method.

        Raises:
            UserError: There is no such method.
        """
        if method not in METHODS:
            raise UserError(
                f"unknown method {method!r}; {_suggest(method, list(METHODS))}"
            )
        backbone = METHODS[method].backbone
        block: AttentionBlock | GcnBlock
        block = getattr(self, BACKBONES[backbone].recipe_block)
        if backbone == "gatv2" and self.gatv2 is not None:
            block = self.gatv2
        values = block.model_dump()
        per_head = values.pop("channels_per_head", None)
        if per_head is not None:
            values["hidden_channels"] = per_head * values["heads"]
        values |= {"method": method, "training": self.training}
        return _validated(RunConfig, values, f"settings of {method}")


def load_recipe(name_or_path: str | Path) -> Recipe:
    """Reads a recipe by name, or from a YAML file of one's own.

    Args:
        name_or_path: A dataset's name for the paper's recipe (``cora``), a name with
            its folder (``paper/cora``), ``csbm``, ``default``, or a path.

    Raises:
        UserError: There is no such recipe, or it is not valid.
    """
    name = str(name_or_path)
    shipped = _shipped()
    file: Traversable | None = shipped.get(name) or shipped.get(f"paper/{name}")
    if file is None and Path(name).suffix in (".yaml", ".yml"):
        file = Path(name)
    if file is None:
        names = [key.removeprefix("paper/") for key in shipped]
        raise UserError(
            f"no recipe {name!r}; give the path of a .yaml file, or "
            f"{_suggest(name, names)}"
        )
    values = read_yaml(file, f"recipe {name}")
    if not isinstance(values, dict):
        raise UserError(
            f"recipe {name} holds {type(values).__name__}, not settings by name; start "
            f"from a copy of the default recipe"
        )
    return _validated(Recipe, values, f"recipe {name}")


def recipe_names() -> list[str]:
    """The recipes that come with the package, by name."""
    return sorted(_shipped())


def _shipped() -> dict[str, Traversable]:
    found: dict[str, Traversable] = {}

    def collect(folder: Traversable, prefix: str) -> None:
        for entry in folder.iterdir():
            if entry.is_dir():
                # Plans of studies say what to run, not with which settings.
                if entry.name != "studies":
                    collect(entry, f"{prefix}{entry.name}/")
            elif entry.name.endswith(".yaml"):
                found[prefix + entry.name.removesuffix(".yaml")] = entry

    collect(resources.files("tempergat") / "recipes", "")
    return found


_Model = TypeVar("_Model", bound=_Frozen)


def _validated(model: type[_Model], values: Mapping[str, Any], what: str) -> _Model:
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        raise UserError(f"{what}: {told(error, model)}") from error


def told(error: ValidationError, model: type[BaseModel]) -> str:
    """The first thing a model has against values: place, reason, value seen."""
    first = error.errors()[0]
    place = [str(part) for part in first["loc"]]
    seen = "" if isinstance(first["input"], dict) else f" (got {first['input']!r})"
    reason = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        reason = f"no such setting; {_suggest(place[-1], _settings_at(model, place))}"
    return ": ".join(part for part in (".".join(place), f"{reason}{seen}") if part)


def _settings_at(model: type[BaseModel], place: list[str]) -> list[str]:
    """The settings that a model has beside a place in it."""
    for part in place[:-1]:
        annotation = model.model_fields[part].annotation
        kinds = (annotation, *get_args(annotation))
        model = next(
            kind
            for kind in kinds
            if isinstance(kind, type) and issubclass(kind, BaseModel)
        )
    return list(model.model_fields)


def _suggest(name: str, known: list[str]) -> str:
    hint = did_you_mean(name, known).strip()
    return hint or f"choose one of {', '.join(sorted(known))}"
