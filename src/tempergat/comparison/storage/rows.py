"""A run as a row of the store's table, and back.

A store may have been damaged or altered, so every value is checked while it is read: a
value of another type than the one that was written raises a `ValueError` here, and not
some other error far away.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, NamedTuple, TypeVar

import numpy as np

from tempergat.comparison.storage.schema import RUN_COLUMNS, check_row, with_checksum
from tempergat.training import (
    Condition,
    LayerRecord,
    Run,
    Scores,
    SparseCounts,
    canonical_json,
    confusion_as_json,
    confusion_rows,
)

Item = TypeVar("Item")
# The columns that a run has as attributes too; then come its record and a checksum.
_PLAIN_COLUMNS = tuple(RUN_COLUMNS)[:-2]


def encode(run: Run) -> tuple[Any, ...]:
    """A run as the columns of the store's table, a checksum last."""
    record = {name: field.encode(getattr(run, name)) for name, field in _RECORD.items()}
    columns = [getattr(run, name) for name in _PLAIN_COLUMNS]
    return with_checksum([*columns, canonical_json(record | encode_extras(run))])


def decode(row: Sequence[Any]) -> Run:
    """The run that `encode` turned into this row.

    Raises:
        ValueError: The row does not match its checksum, or holds other values than
            `encode` writes.
    """
    columns = dict(zip(_PLAIN_COLUMNS, row, strict=False))
    which = f"of {columns['method']} seed {columns['seed']}"
    check_row(row, which)
    try:
        record = by_name(json.loads(text(row[-2])))
        run = Run(
            dataset=text(columns["dataset"]),
            fingerprint=text(columns["fingerprint"]),
            method=text(columns["method"]),
            seed=integer(columns["seed"]),
            status=_one_of("done", "failed")(columns["status"]),
            group_id=or_none(columns["group_id"], integer),
            **{name: field.decode(record[name]) for name, field in _RECORD.items()},
            **decode_extras(record),
        )
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"the row {which} was altered") from error
    if any(getattr(run, name) != columns[name] for name in _PLAIN_COLUMNS):
        raise ValueError(f"the row {which} contradicts itself")
    rule = run.config.get("selection")
    if run.status == "done" and rule is not None and rule not in run.scores:
        raise ValueError(f"the row {which} lacks its score")
    return run


def encode_extras(run: Run) -> dict[str, Any]:
    """The attributes that differ from their default, as plain JSON values."""
    return {
        name: field.encode(getattr(run, name))
        for name, field in EXTRAS.items()
        if getattr(run, name) != field.default
    }


def decode_extras(record: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that `encode_extras` wrote; those left out have their default."""
    return {
        name: field.decode(record[name]) if name in record else field.default
        for name, field in EXTRAS.items()
    }


def encode_confusion(counts: Sequence[Sequence[int]]) -> Any:
    """All rows, or only the cells that are not 0 where that is shorter."""
    full = np.array(counts)
    if 3 * np.count_nonzero(full) < full.size:
        counts = SparseCounts.of(full)
    return confusion_as_json(counts)


def decode_confusion(record: Any) -> Sequence[tuple[int, ...]]:
    """The rows of what `encode_confusion` wrote."""
    if isinstance(record, list):
        rows = _counts(record)
        if any(len(row) != len(rows) for row in rows):
            raise ValueError("a confusion matrix is not square")
        return confusion_rows(np.array(rows))
    sparse = by_name(record)
    if sparse.keys() != {"classes", "cells"}:
        raise ValueError("a confusion matrix holds other values than its cells")
    counts = SparseCounts(integer(sparse["classes"]), _counts(sparse["cells"]))
    return confusion_rows(np.array(counts))


def _unchanged(value: Any) -> Any:
    return value


def text(value: Any) -> str:
    """A text."""
    if not isinstance(value, str):
        raise ValueError(f"a {type(value).__name__} is in the place of a text")
    return value


def integer(value: Any) -> int:
    """A whole number of at least 0."""
    if type(value) is not int or value < 0:
        raise ValueError("something else is in the place of a whole number")
    return int(value)


def distinct(value: Any, item: Callable[[Any], Item]) -> tuple[Item, ...]:
    """A JSON list of at least one value, each once, read from a text."""
    items = listed(json.loads(text(value)), item)
    if not items or len(set(items)) < len(items):
        raise ValueError("a list is empty or holds a value twice")
    return items


def number(value: Any) -> float:
    """A finite number."""
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ValueError("something else is in the place of a number")
    checked: float = value
    return checked


def listed(value: Any, item: Callable[[Any], Item]) -> tuple[Item, ...]:
    """A list whose items are checked by `item`."""
    if not isinstance(value, list):
        raise ValueError("something else is in the place of a list")
    return tuple(item(each) for each in value)


def by_name(value: Any, item: Callable[[Any], Any] = _unchanged) -> dict[str, Any]:
    """A JSON object whose values are checked by `item`."""
    if not isinstance(value, dict):
        raise ValueError("something else is in the place of a JSON object")
    return {name: item(each) for name, each in value.items()}


def or_none(value: Any, item: Callable[[Any], Item]) -> Item | None:
    """None, or what `item` makes of the value."""
    return None if value is None else item(value)


def _one_of(*words: str) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if value not in words:
            raise ValueError(f"something else is in the place of {' or '.join(words)}")
        return value

    return check


def _counts(value: Any) -> tuple[tuple[int, ...], ...]:
    return listed(value, lambda row: listed(row, integer))


def _encode_scores(scores: Mapping[str, Scores]) -> dict[str, Any]:
    return {rule: asdict(score) for rule, score in scores.items()}


def _decode_scores(record: Any) -> dict[str, Scores]:
    return by_name(record, _decode_score)


def _decode_score(record: Any) -> Scores:
    score = by_name(record)
    if len(score) != len(fields(Scores)):
        raise ValueError("scores hold other values than those of the three parts")
    train = or_none(score["train"], number)
    val, test = number(score["val"]), number(score["test"])
    return Scores(integer(score["epoch"]), train, val, test)


def _encode_layers(layers: LayerRecord) -> dict[str, list[float | None]]:
    record = {name: _encode_numbers(values) for name, values in vars(layers).items()}
    for name in ("spread", "entropy"):
        if not record[name]:
            del record[name]
    return record


def _decode_layers(record: Any) -> LayerRecord:
    return LayerRecord(**by_name(record, _decode_numbers))


def _encode_numbers(values: Sequence[float]) -> list[float | None]:
    # JSON has no NaN, and a run that diverged may have learned such values.
    return [value if math.isfinite(value) else None for value in values]


def _decode_numbers(values: Any) -> tuple[float, ...]:
    return listed(values, lambda value: math.nan if value is None else number(value))


def _decode_condition(record: Any) -> Condition:
    condition = Condition(**by_name(record))
    is_change = condition.noise == "none" and condition.change is not None
    if condition.noise not in ("gaussian", "missing") and not is_change:
        raise ValueError("a kind of noise has another name")
    return Condition(
        condition.noise,
        number(condition.level),
        or_none(condition.tau, number),
        or_none(condition.change, text),
    )


class _Field(NamedTuple):
    """How an attribute of a run becomes JSON, and back."""

    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]
    default: Any = None


def _optional(item: Callable[[Any], Any]) -> _Field:
    return _Field(_unchanged, lambda value: or_none(value, item))


# Written for every run.
_RECORD = {
    "config": _Field(dict, lambda record: by_name(record)),
    "scores": _Field(_encode_scores, _decode_scores),
    "failed_epoch": _optional(integer),
    "reason": _optional(text),
    "split": _Field(_unchanged, integer),
    "selected": _Field(_encode_layers, _decode_layers),
    "last": _Field(_encode_layers, _decode_layers),
    "time_s": _Field(_unchanged, number),
    "memory_bytes": _optional(integer),
    "versions": _Field(dict, lambda record: by_name(record, text)),
    "device": _Field(_unchanged, text),
}
# Written only where they differ from their default.
EXTRAS = {
    "condition": _Field(lambda condition: condition.facts, _decode_condition),
    "matmul_precision": _Field(_unchanged, _one_of("highest", "high"), "highest"),
    "numerics": _Field(_unchanged, integer, 1),
    "parameter_count": _Field(_unchanged, integer),
    "curves": _Field(
        lambda curves: {name: _encode_numbers(curve) for name, curve in curves.items()},
        lambda record: by_name(record, _decode_numbers),
    ),
    "layers_at_epochs": _Field(
        lambda layers: {str(epoch): _encode_layers(at) for epoch, at in layers.items()},
        lambda record: {
            int(epoch): at for epoch, at in by_name(record, _decode_layers).items()
        },
    ),
    "metrics": _Field(
        lambda metrics: {name: _encode_scores(by) for name, by in metrics.items()},
        lambda record: by_name(record, _decode_scores),
    ),
    "confusion": _Field(encode_confusion, decode_confusion),
    "gate_counts": _Field(lambda counts: [list(layer) for layer in counts], _counts),
    "training_nodes": _Field(_unchanged, integer),
}
