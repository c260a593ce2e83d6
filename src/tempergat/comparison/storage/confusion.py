"""Confusion matrices as JSON."""

from collections.abc import Sequence
from typing import Any

from tempergat.comparison.storage.checked_values import by_name, listed, whole

Confusion = tuple[tuple[int, ...], ...]
# Far above what is trained; a damaged store may say more.
_MOST_CLASSES = 10_000


def encode_confusion(counts: Sequence[Sequence[int]]) -> Any:
    """All rows, or only the cells that are not 0 where that is shorter."""
    cells = [
        [true, predicted, count]
        for true, row in enumerate(counts)
        if any(row)
        for predicted, count in enumerate(row)
        if count
    ]
    if 3 * len(cells) >= len(counts) ** 2:
        return [list(row) for row in counts]
    return {"classes": len(counts), "cells": cells}


def decode_confusion(record: Any) -> Confusion:
    """The rows of what `encode_confusion` wrote.

    Raises:
        ValueError: It is something else.
    """
    if isinstance(record, list):
        rows = listed(record, lambda row: listed(row, whole))
        if any(len(row) != len(rows) for row in rows):
            raise ValueError("a confusion matrix is not square")
        return rows
    found = by_name(record, lambda value: value)
    if found.keys() != {"classes", "cells"}:
        raise ValueError("a confusion matrix holds other values than its cells")
    classes = whole(found["classes"])
    if classes > _MOST_CLASSES:
        raise ValueError(f"a confusion matrix has {classes} classes")
    filled = [[0] * classes for _ in range(classes)]
    for cell in listed(found["cells"], lambda cell: listed(cell, whole)):
        if len(cell) != 3 or max(cell[:2]) >= classes:
            raise ValueError("a confusion matrix has a cell outside of it")
        true, predicted, count = cell
        filled[true][predicted] = count
    return tuple(map(tuple, filled))
