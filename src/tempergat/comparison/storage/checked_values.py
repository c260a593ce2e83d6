"""Values of a store, checked while they are read.

A store may have been damaged or altered; a value of another type than the one that was
written would raise an error somewhere far from here.
"""

import json
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

Item = TypeVar("Item")


def text(value: Any) -> str:
    """A text.

    Raises:
        ValueError: It is something else.
    """
    if not isinstance(value, str):
        raise ValueError(f"a {type(value).__name__} is in the place of a text")
    return value


def whole(value: Any) -> int:
    """A whole number of at least 0.

    Raises:
        ValueError: It is something else.
    """
    if type(value) is not int or value < 0:
        raise ValueError("something else is in the place of a whole number")
    found: int = value
    return found


def number(value: Any) -> float:
    """A finite number.

    Raises:
        ValueError: It is something else.
    """
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ValueError("something else is in the place of a number")
    found: float = value
    return found


def listed(value: Any, item: Callable[[Any], Item]) -> tuple[Item, ...]:
    """A list whose items are checked by `item`.

    Raises:
        ValueError: It is something else.
    """
    if not isinstance(value, list):
        raise ValueError("something else is in the place of a list")
    return tuple(item(each) for each in value)


def by_name(value: Any, item: Callable[[Any], Item]) -> dict[str, Item]:
    """A JSON object whose values are checked by `item`.

    Raises:
        ValueError: It is something else.
    """
    if not isinstance(value, dict):
        raise ValueError("something else is in the place of a JSON object")
    return {name: item(each) for name, each in value.items()}


def or_none(value: Any, item: Callable[[Any], Item]) -> Item | None:
    """None, or what `item` makes of the value."""
    return None if value is None else item(value)


def distinct(value: Any, item: Callable[[Any], Item]) -> tuple[Item, ...]:
    """A JSON list of at least one value, each once, read from a text.

    Raises:
        ValueError: It is something else.
    """
    found: Sequence[Item] = listed(json.loads(text(value)), item)
    if not found or len(set(found)) < len(found):
        raise ValueError("a list is empty or holds a value twice")
    return tuple(found)
