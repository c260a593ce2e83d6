"""Runs, and the groups that train together, as rows of a store, and back.

A store may have been damaged or altered, so every value is checked while it is read: a
value of another type than the one that was written raises a `ValueError` here, and not
some other error far away.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import AfterValidator, BaseModel, Field, TypeAdapter, ValidationError

from tempergat.comparison.storage.database import TABLES, check_row, with_checksum
from tempergat.training import (
    NUMERICS,
    Condition,
    LayerRecord,
    NoiseKind,
    Run,
    Scores,
    SparseCounts,
    canonical_json,
    confusion_as_json,
    confusion_rows,
)

# The columns that a run has as attributes too; then come its record and a checksum.
_PLAIN_COLUMNS = tuple(TABLES["runs"])[:-2]

_Text = Annotated[str, Field(strict=True)]
_Count = Annotated[int, Field(strict=True, ge=0)]
_Finite = Annotated[float, Field(strict=True, allow_inf_nan=False)]
_Number = Annotated[int, Field(strict=True)] | _Finite
_Counts = tuple[tuple[_Count, ...], ...]
_HASHES, _SEEDS = TypeAdapter(tuple[_Text, ...]), TypeAdapter(tuple[_Count, ...])

# Fingerprint, method, numerics and device: what the runs of a group share.
Study = tuple[str, str, int, str]


class Origin(NamedTuple):
    """Where runs were made; runs of different origins are not compared."""

    device: str
    numerics: int

    def __str__(self) -> str:
        if self.numerics == NUMERICS:
            return self.device
        return f"{self.device} with numerics {self.numerics}"


class RunKey(NamedTuple):
    """What identifies a run."""

    fingerprint: str
    method: str
    numerics: int
    device: str
    config_hash: str
    seed: int

    @classmethod
    def of(cls, run: Run) -> "RunKey":
        """The key of a run."""
        return cls(*(getattr(run, name) for name in cls._fields))


@dataclass(frozen=True)
class Group:
    """Runs of one method on one dataset that train together.

    It holds every seed under every configuration. There is one configuration; only
    groups that earlier versions trained may have several.
    """

    id: int
    fingerprint: str
    method: str
    config_hashes: tuple[str, ...]
    seeds: tuple[int, ...]
    device: str = "cpu"
    numerics: int = NUMERICS

    @property
    def study(self) -> Study:
        """Fingerprint, method, numerics and device: what its runs share."""
        return (self.fingerprint, self.method, self.numerics, self.device)

    @cached_property
    def keys(self) -> frozenset[RunKey]:
        """What identifies each of its runs."""
        return frozenset(
            RunKey(*self.study, config_hash, seed)
            for config_hash in self.config_hashes
            for seed in self.seeds
        )


def even_groups(seeds: Sequence[int], most: int) -> list[Sequence[int]]:
    """Seeds cut into as few groups of at most `most` as possible, of about one size."""
    count = -(-len(seeds) // most)
    cuts = [-(-len(seeds) * number // max(count, 1)) for number in range(count + 1)]
    return [seeds[a:b] for a, b in pairwise(cuts)]


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


def group_row(
    study: Study, config_hashes: Sequence[str], seeds: Sequence[int]
) -> tuple[Any, ...]:
    """The columns of a new group's row; the store gives it its number."""
    lists = (canonical_json(list(config_hashes)), canonical_json(list(seeds)))
    return (None, *with_checksum((*study, *lists)))


def group_of(row: Sequence[Any]) -> Group:
    """The group of a row.

    Raises:
        ValueError: The row does not match its checksum, or holds no group.
    """
    id_, fingerprint, method, numerics, device, hashes, seeds, _ = row
    check_row(row[1:], f"of group {id_}")
    try:
        keys, numbers = _HASHES.validate_json(hashes), _SEEDS.validate_json(seeds)
    except ValidationError as error:
        raise ValueError(f"the row of group {id_} was altered") from error
    if not keys or not numbers or len({*keys, *numbers}) < len(keys) + len(numbers):
        raise ValueError("a list is empty or holds a value twice")
    return Group(id_, fingerprint, method, keys, numbers, device, numerics)


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


_Numbers = Annotated[
    tuple[_Number | None, ...],
    AfterValidator(lambda read: tuple(math.nan if n is None else n for n in read)),
]


class _Exact(BaseModel, extra="forbid"):
    """Holds its own fields and no others."""


class _Scores(_Exact):
    epoch: _Count
    train: _Number | None
    val: _Number
    test: _Number


class _Layers(_Exact):
    temperatures: _Numbers = ()
    gate_means: _Numbers = ()
    spread: _Numbers = ()
    entropy: _Numbers = ()


class _Condition(_Exact):
    noise: NoiseKind = "none"
    level: _Number = 0.0
    tau: _Number | None = None
    change: _Text | None = None
    sigma: _Number | None = None


class _Cells(_Exact):
    classes: _Count
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
    numerics: _Count = 1
    parameter_count: _Count | None = None
    curves: dict[str, _Numbers] | None = None
    layers_at_epochs: dict[int, _AsLayers] | None = None
    metrics: dict[str, dict[str, _AsScores]] | None = None
    confusion: Annotated[Any, AfterValidator(decode_confusion)] = None
    gate_counts: _Counts | None = None
    training_nodes: _Count | None = None
    shares: tuple[bool, bool] | None = None


class _Columns(BaseModel):
    """Attributes that are columns of the table."""

    dataset: _Text
    fingerprint: _Text
    method: _Text
    seed: _Count
    status: Literal["done", "failed"]
    group_id: _Count | None


class _Record(_Columns, _Extras):
    """A run; what this class itself adds is written for every run."""

    config: dict[str, Any]
    scores: dict[str, _AsScores]
    failed_epoch: _Count | None
    reason: _Text | None
    split: _Count
    selected: _AsLayers
    last: _AsLayers
    time_s: _Number
    memory_bytes: _Count | None
    versions: dict[str, _Text]
    device: _Text


EXTRAS = tuple(_Extras.model_fields)
_RECORD = tuple(_Record.__annotations__)
