"""The settings that a user can give by a short name, and the values they take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Setting(NamedTuple):
    """A setting by the short name that users give.

    Attributes:
        fields: The fields of `RunConfig` that it sets.
        read: Returns the value as the fields hold it; raises ValueError where it is
            not one.
        range: Its values in words.
        of_model: Whether it concerns the built-in models alone.
    """

    fields: tuple[str, ...]
    read: Callable[[Any], Any]
    range: str
    of_model: bool = True


def _number(kind: type, lowest: float, highest: float) -> Callable[[Any], Any]:
    types = (int,) if kind is int else (int, float)

    def read(value: Any) -> Any:
        right = isinstance(value, types) and not isinstance(value, bool)
        if not right or not lowest <= value <= highest:
            raise ValueError(value)
        return kind(value)

    return read


def _word(*choices: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if value not in choices:
            raise ValueError(value)
        return str(value)

    return read


def _fanout(value: Any) -> tuple[int, ...]:
    """One number per hop, as a list or as text like ``15,10,5``."""
    numbers = value.split(",") if isinstance(value, str) else value
    if not isinstance(numbers, list | tuple):
        raise ValueError(value)
    found = tuple(int(number) for number in numbers)
    if not found or not all(n == -1 or 1 <= n <= 10**9 for n in found):
        raise ValueError(value)
    return found


# Just below 1, where dropout would remove everything.
_HIGHEST_RATE = 1.0 - 2.0**-24
_ANY_SIZE = _number(int, 1, 10**14)
_POSITIVE = _number(float, 1e-300, 1e300)

SETTINGS = {
    "epochs": Setting(
        ("epochs",),
        _number(int, 1, 10**6),
        "a whole number from 1 to 1,000,000",
        of_model=False,
    ),
    "lr": Setting(
        ("learning_rate",), _POSITIVE, "a number above 0, like 0.01", of_model=False
    ),
    "hidden": Setting(
        ("hidden_channels",), _ANY_SIZE, "a whole number of at least 1, like 64"
    ),
    "heads": Setting(("heads",), _ANY_SIZE, "a whole number of at least 1, like 8"),
    "layers": Setting(
        ("num_layers",), _number(int, 1, 10**3), "a whole number from 1 to 1,000"
    ),
    "dropout": Setting(
        ("feature_dropout", "attention_dropout"),
        _number(float, 0.0, _HIGHEST_RATE),
        "a number from 0 up to, but less than, 1",
    ),
    "optimizer": Setting(
        ("optimizer",), _word("adam", "adamw"), "adam or adamw", of_model=False
    ),
    "schedule": Setting(("schedule",), _word("cosine"), "cosine", of_model=False),
    "clip_norm": Setting(
        ("clip_norm",), _POSITIVE, "a number above 0, like 1.0", of_model=False
    ),
    "training": Setting(
        ("training",), _word("full", "sampled"), "full or sampled", of_model=False
    ),
    "fanout": Setting(
        ("fanout",),
        _fanout,
        "how many neighbours to draw in each hop, like 15,10,5; -1 for all",
        of_model=False,
    ),
    "batch_size": Setting(
        ("batch_size",),
        _ANY_SIZE,
        "a whole number of at least 1, like 1024",
        of_model=False,
    ),
    "eval_batch_size": Setting(
        ("eval_batch_size",),
        _ANY_SIZE,
        "a whole number of at least 1, like 4096",
        of_model=False,
    ),
}
SETTING_NAMES = tuple(SETTINGS)
