"""Values for JSON, which has no NaN and no infinity."""

import math
from collections.abc import Callable
from typing import Any


def replace_non_finite(
    value: Any, replacement: Callable[[float], Any] = lambda number: None
) -> Any:
    """A copy of nested dicts, lists and tuples with NaN and infinities replaced.

    Args:
        value: A plain value; tuples become lists, as in JSON.
        replacement: What to put in place of a number; null without it.
    """
    if isinstance(value, dict):
        return {key: replace_non_finite(v, replacement) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [replace_non_finite(item, replacement) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return replacement(value)
    return value
