"""A run as a row of the store's table, and back."""

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from tempergat.training import (
    Condition,
    LayerRecord,
    Run,
    Scores,
    Status,
    canonical_json,
)


def encode(run: Run) -> tuple[Any, ...]:
    """A run as the columns of the store's table, a checksum last."""
    record = {
        "config": dict(run.config),
        "scores": _encode_scores(run.scores),
        "failed_epoch": run.failed_epoch,
        "reason": run.reason,
        "split": run.split,
        "selected": _encode_layers(run.selected),
        "last": _encode_layers(run.last),
        "time_s": run.time_s,
        "memory_bytes": run.memory_bytes,
        "versions": dict(run.versions),
        "device": run.device,
        **encode_extras(run),
    }
    fields = [
        run.fingerprint,
        run.method,
        run.config_hash,
        run.seed,
        run.numerics,
        run.device,
        run.dataset,
        run.status,
        run.group_id,
        canonical_json(record),
    ]
    return (*fields, _checksum(fields))


def decode(row: Sequence[Any]) -> Run:
    """The run that `encode` turned into this row.

    Raises:
        ValueError: The row does not match its checksum.
    """
    fingerprint, method, _, seed, _, _, dataset, status, group_id, text, checksum = row
    _require_checksum(row[:-1], checksum)
    return _run(fingerprint, method, seed, dataset, status, group_id, text)


def decode_schema_1(row: Sequence[Any]) -> Run:
    """The run of a row as version 0.1.0 wrote it, without numerics and device.

    Raises:
        ValueError: The row does not match its checksum.
    """
    fingerprint, method, _, seed, dataset, status, group_id, text, checksum = row
    _require_checksum(row[:-1], checksum)
    return _run(fingerprint, method, seed, dataset, status, group_id, text)


def _require_checksum(fields: Sequence[Any], checksum: str) -> None:
    if _checksum(fields) != checksum:
        raise ValueError(f"the row of {fields[1]} seed {fields[3]} was altered")


def _run(
    fingerprint: str,
    method: str,
    seed: int,
    dataset: str,
    status: Status,
    group_id: int | None,
    text: str,
) -> Run:
    record = json.loads(text)
    return Run(
        dataset=dataset,
        fingerprint=fingerprint,
        method=method,
        seed=seed,
        config=record["config"],
        scores=_decode_scores(record["scores"]),
        status=status,
        failed_epoch=record["failed_epoch"],
        reason=record["reason"],
        split=record["split"],
        selected=_decode_layers(record["selected"]),
        last=_decode_layers(record["last"]),
        time_s=record["time_s"],
        memory_bytes=record["memory_bytes"],
        versions=record["versions"],
        device=record["device"],
        group_id=group_id,
        **decode_extras(record),
    )


class _Extra(NamedTuple):
    """How an attribute that runs of version 0.1.0 lack is written as JSON."""

    default: Any
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


def _unchanged(value: Any) -> Any:
    return value


def encode_extras(run: Run) -> dict[str, Any]:
    """The attributes that version 0.1.0 did not have, as plain JSON values.

    An attribute that has its default value, as in every run of 0.1.0, is left out.
    """
    return {
        name: extra.encode(getattr(run, name))
        for name, extra in EXTRAS.items()
        if getattr(run, name) != extra.default
    }


def decode_extras(record: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that `encode_extras` wrote; those left out have their default."""
    return {
        name: extra.decode(record[name]) if name in record else extra.default
        for name, extra in EXTRAS.items()
    }


def _encode_scores(scores: Mapping[str, Scores]) -> dict[str, Any]:
    return {rule: asdict(found) for rule, found in scores.items()}


def _decode_scores(record: Mapping[str, Any]) -> dict[str, Scores]:
    return {rule: Scores(**found) for rule, found in record.items()}


def _encode_layers(layers: LayerRecord) -> dict[str, list[float | None]]:
    found = {name: _encode_numbers(values) for name, values in vars(layers).items()}
    for name in ("spread", "entropy"):
        if not found[name]:
            del found[name]
    return found


def _decode_layers(record: Mapping[str, Sequence[float | None]]) -> LayerRecord:
    return LayerRecord(
        **{name: _decode_numbers(values) for name, values in record.items()}
    )


def _encode_numbers(values: Sequence[float]) -> list[float | None]:
    # JSON has no NaN, and a run that diverged may have learned such values.
    return [value if math.isfinite(value) else None for value in values]


def _decode_numbers(values: Sequence[float | None]) -> tuple[float, ...]:
    return tuple(math.nan if value is None else value for value in values)


def _checksum(fields: Sequence[Any]) -> str:
    return hashlib.sha256(canonical_json(list(fields)).encode()).hexdigest()[:16]


EXTRAS = {
    "condition": _Extra(None, asdict, lambda record: Condition(**record)),
    "matmul_precision": _Extra("highest", _unchanged, _unchanged),
    "numerics": _Extra(1, _unchanged, _unchanged),
    "parameter_count": _Extra(None, _unchanged, _unchanged),
    "curves": _Extra(
        None,
        lambda curves: {name: _encode_numbers(found) for name, found in curves.items()},
        lambda record: {name: _decode_numbers(found) for name, found in record.items()},
    ),
    "layers_at_epochs": _Extra(
        None,
        lambda found: {str(epoch): _encode_layers(at) for epoch, at in found.items()},
        lambda record: {int(epoch): _decode_layers(at) for epoch, at in record.items()},
    ),
    "metrics": _Extra(
        None,
        lambda metrics: {name: _encode_scores(by) for name, by in metrics.items()},
        lambda record: {name: _decode_scores(by) for name, by in record.items()},
    ),
    "confusion": _Extra(
        None,
        lambda counts: [list(row) for row in counts],
        lambda record: tuple(tuple(row) for row in record),
    ),
}
