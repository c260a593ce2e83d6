"""Settings that a user gives in place of those of a recipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, get_args, get_type_hints

from pydantic import TypeAdapter

from tempergat.base import UserError, suggest_one_of
from tempergat.nn import BACKBONES, METHODS
from tempergat.training.settings.config import RunConfig
from tempergat.training.settings.fields import MetricName
from tempergat.training.settings.recipes import metric_of, unnamed_metric
from tempergat.training.settings.table import ARGUMENTS, SETTINGS, fields_of

METRICS: tuple[str, ...] = get_args(MetricName)

_SAMPLING_FIELDS = ("fanout", "batch_size", "eval_batch_size")
# Where neither the recipe nor the user says otherwise.
_USUAL_FANOUT = (15, 10, 5)
_USUAL_BATCH_SIZE = 1024
# Only layers with attention have these.
_ATTENTION_FIELDS = ("heads", "attention_dropout")


@dataclass(frozen=True)
class Overrides:
    """Settings in place of a recipe's, for all methods.

    Attributes:
        settings: Values by their short names, like `lr`.
        metric: The metric of the scores; None for the recipe's.
        class_weights: How classes are weighed in the loss; None for the recipe's.
    """

    settings: Mapping[str, Any]
    metric: str | None = None
    class_weights: str | None = None

    @property
    def values(self) -> dict[str, Any]:
        """Everything that was given, by name."""
        named = {"metric": self.metric, "class_weights": self.class_weights}
        given = {**self.settings, **named}
        return {name: value for name, value in given.items() if value is not None}

    @property
    def words(self) -> str:
        """` with epochs=50, lr=0.01`; empty where nothing was given."""
        given = ", ".join(f"{name}={value}" for name, value in self.values.items())
        return f" with {given}" if given else ""

    @property
    def model_settings(self) -> tuple[str, ...]:
        """The settings given that have no effect on a user's own module."""
        return tuple(name for name in self.settings if SETTINGS[name].of_model)

    @property
    def fields(self) -> frozenset[str]:
        """The fields of `RunConfig` that were given."""
        return frozenset(f for name in self.settings for f in fields_of(name))

    def applied_to(self, config: RunConfig, graph: object) -> RunConfig:
        """The settings of one method with these in their place.

        Args:
            config: The method's settings in the recipe.
            graph: The graph or its name. Its authors' metric is used where neither the
                recipe nor the user names one.

        Raises:
            UserError: The width of a layer is not divisible by its heads, or a setting
                of sampled training is given for full training.
        """
        is_own = config.source_hash is not None
        has_attention = False
        if not is_own:
            has_attention = BACKBONES[METHODS[config.method].backbone].has_attention
        changes: dict[str, Any] = {}
        for name, value in self.settings.items():
            if is_own and SETTINGS[name].of_model:
                continue
            for field in fields_of(name):
                if has_attention or field not in _ATTENTION_FIELDS:
                    changes[field] = _read(name, value)
        metric = self.metric or config.metric or metric_of(graph)
        named = None if metric == unnamed_metric(graph) else metric
        if named != config.metric:
            changes["metric"] = named
        if self.class_weights is not None:
            changes["class_weights"] = self.class_weights
        if not changes:
            return config
        changes |= _sampling(config, changes)
        if has_attention:
            _require_whole_heads(
                changes.get("hidden_channels", config.hidden_channels),
                changes.get("heads", config.heads),
            )
        return config.with_changes(**changes)


def make_overrides(
    settings: Mapping[str, Any] | None = None,
    metric: str | None = None,
    class_weights: str | None = None,
) -> Overrides:
    """Checks the settings that a user gave.

    Args:
        settings: Values by the names of `SETTINGS`; None for none.
        metric: A metric; None for the recipe's.
        class_weights: `balanced`; None for the recipe's.

    Raises:
        UserError: There is no such setting, or a value is out of its range.
    """
    for name in settings or {}:
        if name not in SETTINGS:
            raise UserError(
                f"there is no setting {name!r} to change; "
                f"{suggest_one_of(str(name), tuple(SETTINGS))}"
            )
    overrides = Overrides(dict(settings or {}), metric, class_weights)
    if metric is not None and metric not in METRICS:
        raise UserError(
            f"there is no metric {metric!r}; {suggest_one_of(str(metric), METRICS)}"
        )
    for name, value in {**overrides.settings, "class_weights": class_weights}.items():
        try:
            _read(name, value)
        except ValueError as error:
            words = (SETTINGS | ARGUMENTS)[name].range
            raise UserError(f"{name} is {value!r}; give {words}") from error
    return overrides


def _read(name: str, value: Any) -> Any:
    """A setting as its fields in `RunConfig` hold it.

    Raises:
        ValueError: Their type has no such value.
    """
    if name == "fanout":
        numbers = value.split(",") if isinstance(value, str) else value
        if not isinstance(numbers, list | tuple) or not numbers:
            raise ValueError(value)
        value = tuple(int(number) for number in numbers)
        if 0 in value:
            raise ValueError(value)
    if value is None and name in SETTINGS:
        raise ValueError(value)
    return _field_type(fields_of(name)[0]).validate_python(value, strict=True)


@cache
def _field_type(field: str) -> TypeAdapter[Any]:
    return TypeAdapter(get_type_hints(RunConfig, include_extras=True)[field])


def _sampling(config: RunConfig, changes: Mapping[str, Any]) -> dict[str, Any]:
    """What a change between full and sampled training changes as well."""
    training = changes.get("training", config.training)
    if training == "full":
        for name in _SAMPLING_FIELDS:
            if name in changes:
                raise UserError(
                    f"{name} is for sampled training, and these settings train "
                    "full-batch; add --training sampled (training='sampled' in Python)"
                )
        return dict.fromkeys(_SAMPLING_FIELDS) if config.training != "full" else {}
    layers = changes.get("num_layers", config.num_layers)
    later = (_USUAL_FANOUT[-1],) * layers
    usual = {
        "fanout": (*_USUAL_FANOUT, *later)[:layers],
        "batch_size": _USUAL_BATCH_SIZE,
    }
    return {
        name: value
        for name, value in usual.items()
        if name not in changes and getattr(config, name) is None
    }


def _require_whole_heads(hidden: int, heads: int) -> None:
    if hidden % heads == 0:
        return
    nearest = max(1, round(hidden / heads)) * heads
    divisor = next(n for n in range(min(heads, hidden), 0, -1) if hidden % n == 0)
    raise UserError(
        f"hidden is {hidden} and heads is {heads}, but hidden is the width of a layer, "
        f"all heads together, and must be divisible by heads; give hidden {nearest} or "
        f"heads {divisor}"
    )
