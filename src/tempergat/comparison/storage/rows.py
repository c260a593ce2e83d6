"""A run as a row of the store's table, and back.

A store may have been damaged or altered, so every value is checked while it is read: a
value of another type than the one that was written raises a `ValueError` here, and not
some other error far away.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, BaseModel, Field, TypeAdapter, ValidationError

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

# The columns that a run has as attributes too; then come its record and a checksum.
_PLAIN_COLUMNS = tuple(RUN_COLUMNS)[:-2]

Text = Annotated[str, Field(strict=True)]
Count = Annotated[int, Field(strict=True, ge=0)]
_Finite = Annotated[float, Field(strict=True, allow_inf_nan=False)]
_Number = Annotated[int, Field(strict=True)] | _Finite
_Counts = tuple[tuple[Count, ...], ...]


def encode(run: Run) -> tuple[Any, ...]:
    """A run as the columns of the store's table, a checksum last."""
    record = {name: _plain(getattr(run, name)) for name in _RECORD}
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
        record = json.loads(row[-2])
        own = {name: columns[name] for name in _Columns.model_fields}
        run = Run(**vars(_Record.model_validate({**record, **own})))
    except (TypeError, RecursionError, ValidationError) as error:
        raise ValueError(f"the row {which} was altered") from error
    if any(getattr(run, name) != columns[name] for name in _PLAIN_COLUMNS):
        raise ValueError(f"the row {which} contradicts itself")
    rule = run.config.get("selection")
    if run.status == "done" and rule is not None and rule not in run.scores:
        raise ValueError(f"the row {which} lacks its score")
    return run


def encode_extras(run: Run) -> dict[str, Any]:
    """The attributes that differ from their default, as plain JSON values."""
    values = {name: getattr(run, name) for name in EXTRAS}
    return {
        name: encode_confusion(value) if name == "confusion" else _plain(value)
        for name, value in values.items()
        if value != _Extras.model_fields[name].default
    }


def decode_extras(record: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that `encode_extras` wrote; those left out have their default."""
    return vars(_Extras.model_validate(record))


def encode_confusion(counts: Sequence[Sequence[int]]) -> Any:
    """All rows, or only the cells that are not 0 where that is shorter."""
    full = np.array(counts)
    if 3 * np.count_nonzero(full) < full.size:
        counts = SparseCounts.of(full)
    return confusion_as_json(counts)


def decode_confusion(record: Any) -> Sequence[tuple[int, ...]]:
    """The rows of what `encode_confusion` wrote."""
    try:
        content = _MATRIX.validate_python(record)
    except ValidationError as error:
        raise ValueError("a confusion matrix holds other values") from error
    if isinstance(content, _Cells):
        return confusion_rows(np.array(SparseCounts(content.classes, content.cells)))
    if any(len(row) != len(content) for row in content):
        raise ValueError("a confusion matrix is not square")
    return confusion_rows(np.array(content))


def _plain(value: Any) -> Any:
    """A value of a run as plain JSON values."""
    if isinstance(value, LayerRecord):
        value = {
            name: values
            for name, values in vars(value).items()
            if values or name in ("temperatures", "gate_means")
        }
    elif isinstance(value, Condition):
        value = value.facts
    elif is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(each) for each in value]
    # JSON has no NaN, and a run that diverged may have learned such values.
    is_lost = isinstance(value, float) and not math.isfinite(value)
    return None if is_lost else value


def _with_nan(values: tuple[float | None, ...]) -> tuple[float, ...]:
    return tuple(math.nan if value is None else value for value in values)


_Numbers = Annotated[tuple[_Number | None, ...], AfterValidator(_with_nan)]


class _Exact(BaseModel, extra="forbid"):
    """Holds its own fields and no others."""


class _Scores(_Exact):
    epoch: Count
    train: _Number | None
    val: _Number
    test: _Number


class _Layers(_Exact):
    temperatures: _Numbers = ()
    gate_means: _Numbers = ()
    spread: _Numbers = ()
    entropy: _Numbers = ()


class _Condition(_Exact):
    noise: Literal["none", "gaussian", "missing"] = "none"
    level: _Number = 0.0
    tau: _Number | None = None
    change: Text | None = None


class _Cells(_Exact):
    classes: Count
    cells: _Counts


_MATRIX: TypeAdapter[_Counts | _Cells] = TypeAdapter(_Counts | _Cells)
_AsScores = Annotated[_Scores, AfterValidator(lambda read: Scores(**vars(read)))]
_AsLayers = Annotated[_Layers, AfterValidator(lambda read: LayerRecord(**vars(read)))]
_AsCondition = Annotated[
    _Condition, AfterValidator(lambda read: Condition(**vars(read)))
]


class _Extras(BaseModel):
    """Attributes that are written only where they differ from their default."""

    condition: _AsCondition | None = None
    matmul_precision: Literal["highest", "high"] = "highest"
    numerics: Count = 1
    parameter_count: Count | None = None
    curves: dict[str, _Numbers] | None = None
    layers_at_epochs: dict[int, _AsLayers] | None = None
    metrics: dict[str, dict[str, _AsScores]] | None = None
    confusion: Annotated[Any, AfterValidator(decode_confusion)] = None
    gate_counts: _Counts | None = None
    training_nodes: Count | None = None


class _Columns(BaseModel):
    """Attributes that are columns of the table."""

    dataset: Text
    fingerprint: Text
    method: Text
    seed: Count
    status: Literal["done", "failed"]
    group_id: Count | None


class _Record(_Columns, _Extras):
    """A run; what this class itself adds is written for every run."""

    config: dict[str, Any]
    scores: dict[str, _AsScores]
    failed_epoch: Count | None
    reason: Text | None
    split: Count
    selected: _AsLayers
    last: _AsLayers
    time_s: _Number
    memory_bytes: Count | None
    versions: dict[str, Text]
    device: Text


EXTRAS = tuple(_Extras.model_fields)
_RECORD = tuple(_Record.__annotations__)
