"""Settings that a user gives in place of those of a recipe."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from tempergat.base import UserError, did_you_mean, joined, listed
from tempergat.training.settings.config import RunConfig, has_setting
from tempergat.training.settings.fields import (
    HAVING,
    HINTS,
    NAMES,
    OPTIONS,
    PARTS,
    values_of,
)
from tempergat.training.settings.recipes import metric_of, unnamed_metric

_SAMPLING_FIELDS = ("fanout", "batch_size", "eval_batch_size")
# Where neither the recipe nor the user says otherwise.
_USUAL_FANOUT = (15, 10, 5)
_USUAL_BATCH_SIZE = 1024


@dataclass(frozen=True)
class Overrides:
    """Settings in place of a recipe's, for all methods that have them.

    Attributes:
        values: The settings by the names they were given by, like `lr`.
    """

    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """` with epochs=50, lr=0.01`; empty where nothing was given."""
        given = ", ".join(f"{name}={_word(v)}" for name, v in self.values.items())
        return f" with {given}" if given else ""

    @property
    def fields(self) -> dict[str, Any]:
        """The settings by the fields of `RunConfig`."""
        return {f: value for name, value in self.values.items() for f in NAMES[name]}

    def options_for(self, method: str) -> list[str]:
        """The settings that a method has, as they are typed."""
        words: list[str] = []
        for name, value in self.values.items():
            if not _has(method, name):
                continue
            if name in OPTIONS and value is not None:
                words += [f"--{name.replace('_', '-')}", _word(value)]
            else:
                words += ["--set", f"{name}={_word(value)}"]
        return words

    def notes_for(self, methods: Iterable[str]) -> list[str]:
        """Which methods lack a setting that others have.

        Raises:
            UserError: None of them has it.
        """
        methods, notes = tuple(methods), []
        for name in self.values:
            lacking = [method for method in methods if not _has(method, name)]
            words = f"{name} is for {HAVING[PARTS[NAMES[name][0]]]}"
            if len(lacking) == len(methods):
                raise UserError(f"{words}, not for {listed(methods)}; leave it out")
            if lacking:
                notes.append(f"{words}, and does not change {joined(lacking)}")
        return notes

    def applied_to(self, config: RunConfig, graph: object) -> RunConfig:
        """The settings of one method with these in their place.

        Args:
            config: The method's settings in the recipe.
            graph: The graph or its name. Its authors' metric is used where neither the
                recipe nor the user names one.

        Raises:
            UserError: The settings do not go together.
        """
        given, method = self.fields, config.method
        changes = {name: given[name] for name in given if has_setting(method, name)}
        metric = changes.pop("metric", None) or config.metric or metric_of(graph)
        named = None if metric == unnamed_metric(graph) else metric
        if named != config.metric:
            changes["metric"] = named
        if not changes:
            return config
        changes |= _sampling(config, changes)
        return config.with_changes(**changes)


def make_overrides(
    settings: Mapping[str, Any] | None = None,
    written: Sequence[str] = (),
    keywords: Mapping[str, Any] | None = None,
    beside: Callable[..., Any] | None = None,
) -> Overrides:
    """Checks the settings that a user gave.

    Args:
        settings: Values by name, as `tempergat methods --settings` lists them.
        written: More settings, written as `NAME=VALUE`.
        keywords: More settings, given as arguments. Those that commands have as options
            are not given where they are None.
        beside: The function that they are arguments of.

    Raises:
        UserError: There is no such setting, a value is out of its range, or a setting
            is given twice.
    """
    for name in keywords or {}:
        if name not in NAMES and beside is not None:
            known = {*inspect.signature(beside).parameters, *NAMES} - {"keywords"}
            raise UserError(
                f"{beside.__name__} has no argument {name!r}; "
                f"{did_you_mean(name, known)}`tempergat methods --settings` lists the "
                "settings, which are arguments too"
            )
    # None is a value of others, like norm.
    named = (keywords or {}).items()
    given = [
        *(settings or {}).items(),
        *((k, value) for k, value in named if value is not None or k not in OPTIONS),
        *map(_parsed, written),
    ]
    values: dict[str, Any] = {}
    by_field: dict[str, str] = {}
    for name, value in given:
        if name not in NAMES:
            raise UserError(
                f"there is no setting {name!r} to change; "
                f"{did_you_mean(str(name), NAMES)}`tempergat methods --settings` lists "
                "all"
            )
        for of in NAMES[name]:
            if of in by_field:
                if by_field[of] == name:
                    raise UserError(f"{name} is given twice; give it once")
                raise UserError(
                    f"{by_field[of]} and {name} set the same; give one of them"
                )
            by_field[of] = name
        try:
            values[name] = _read(name, value)
        except ValueError as error:
            raise UserError(f"{name} is {value!r}; give {values_of(name)}") from error
    return Overrides(values)


def _has(method: str, name: str) -> bool:
    return any(has_setting(method, of) for of in NAMES[name])


def _parsed(text: str) -> tuple[str, Any]:
    """The name and the value in `NAME=VALUE`; a value of no use stays as it is."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals:
        raise UserError(
            f"--set is {text!r}; write it as NAME=VALUE, like gate_penalty=1e-6"
        )
    name = name.replace("-", "_")
    if name not in NAMES or name == "fanout":
        return name, value
    try:
        return name, _type(name).validate_strings(value)
    except ValueError:
        return name, None if value == "none" else value


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
    return _type(name).validate_python(value, strict=True)


@cache
def _type(name: str) -> TypeAdapter[Any]:
    return TypeAdapter(HINTS[NAMES[name][0]])


def _word(value: Any) -> str:
    """A value as it is typed."""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    is_word = value is None or isinstance(value, bool)
    return str(value).lower() if is_word else str(value)


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
