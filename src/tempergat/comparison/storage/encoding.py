"""A run as a row of the store's table, and back."""

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, NamedTuple

from tempergat.comparison.storage.checked_values import (
    by_name,
    listed,
    number,
    or_none,
    text,
    whole,
)
from tempergat.comparison.storage.confusion import decode_confusion, encode_confusion
from tempergat.training import (
    Condition,
    LayerRecord,
    MatmulPrecision,
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
    columns = [
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
    return (*columns, checksum(columns))


def decode(row: Sequence[Any]) -> Run:
    """The run that `encode` turned into this row.

    Raises:
        ValueError: The row does not match its checksum, or holds other values than
            `encode` writes.
    """
    fingerprint, method, key, seed, numerics, device, dataset, *rest = row[:-1]
    check_row(row, f"of {method} seed {seed}")
    run = _run(fingerprint, method, seed, dataset, *rest)
    if (run.config_hash, run.numerics, run.device) != (key, numerics, device):
        raise ValueError(f"the row of {method} seed {seed} contradicts itself")
    rule = run.config.get("selection")
    if run.status == "done" and rule is not None and rule not in run.scores:
        raise ValueError(f"the row of {method} seed {seed} lacks its score")
    return run


def checksum(columns: Sequence[Any]) -> str:
    """The checksum of the other columns of a row."""
    return hashlib.sha256(canonical_json(list(columns)).encode()).hexdigest()[:16]


def check_row(row: Sequence[Any], which: str) -> None:
    """Compares a row with the checksum in its last column.

    Args:
        row: All columns.
        which: Which row it is, for the error.

    Raises:
        ValueError: They do not match.
    """
    try:
        found = checksum(row[:-1])
    except TypeError:
        # Bytes in the place of text.
        found = None
    if found != row[-1]:
        raise ValueError(f"the row {which} was altered")


def _run(
    fingerprint: Any,
    method: Any,
    seed: Any,
    dataset: Any,
    status: Any,
    group_id: Any,
    record_text: Any,
) -> Run:
    try:
        record = by_name(json.loads(text(record_text)), _unchanged)
        return Run(
            dataset=text(dataset),
            fingerprint=text(fingerprint),
            method=text(method),
            seed=whole(seed),
            config=by_name(record["config"], _unchanged),
            scores=_decode_scores(record["scores"]),
            status=_status(status),
            failed_epoch=or_none(record["failed_epoch"], whole),
            reason=or_none(record["reason"], text),
            split=whole(record["split"]),
            selected=_decode_layers(record["selected"]),
            last=_decode_layers(record["last"]),
            time_s=number(record["time_s"]),
            memory_bytes=or_none(record["memory_bytes"], whole),
            versions=by_name(record["versions"], text),
            device=text(record["device"]),
            group_id=or_none(group_id, whole),
            **decode_extras(record),
        )
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"the row of {method} seed {seed} was altered") from error


def _status(value: Any) -> Status:
    if value not in ("done", "failed"):
        raise ValueError("a run is neither done nor failed")
    found: Status = value
    return found


class _Extra(NamedTuple):
    """How an attribute that is written only where it differs becomes JSON."""

    default: Any
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


def _unchanged(value: Any) -> Any:
    return value


def encode_extras(run: Run) -> dict[str, Any]:
    """The attributes that differ from their default, as plain JSON values."""
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


def _decode_scores(record: Any) -> dict[str, Scores]:
    return by_name(record, _decode_score)


def _decode_score(record: Any) -> Scores:
    found = by_name(record, _unchanged)
    if len(found) != len(fields(Scores)):
        raise ValueError("scores hold other values than those of the three parts")
    train = or_none(found["train"], number)
    return Scores(
        whole(found["epoch"]), train, number(found["val"]), number(found["test"])
    )


def _encode_layers(layers: LayerRecord) -> dict[str, list[float | None]]:
    found = {name: _encode_numbers(values) for name, values in vars(layers).items()}
    for name in ("spread", "entropy"):
        if not found[name]:
            del found[name]
    return found


def _decode_layers(record: Any) -> LayerRecord:
    return LayerRecord(**by_name(record, _decode_numbers))


def _encode_numbers(values: Sequence[float]) -> list[float | None]:
    # JSON has no NaN, and a run that diverged may have learned such values.
    return [value if math.isfinite(value) else None for value in values]


def _decode_numbers(values: Any) -> tuple[float, ...]:
    return listed(values, lambda value: math.nan if value is None else number(value))


def _decode_condition(record: Any) -> Condition:
    found = Condition(**by_name(record, _unchanged))
    is_change = found.noise == "none" and found.change is not None
    if found.noise not in ("gaussian", "missing") and not is_change:
        raise ValueError("a kind of noise has another name")
    return Condition(
        found.noise,
        number(found.level),
        or_none(found.tau, number),
        or_none(found.change, text),
    )


def _decode_precision(value: Any) -> MatmulPrecision:
    if value not in ("highest", "high"):
        raise ValueError("a precision has another name")
    found: MatmulPrecision = value
    return found


EXTRAS = {
    "condition": _Extra(None, lambda found: found.facts, _decode_condition),
    "matmul_precision": _Extra("highest", _unchanged, _decode_precision),
    "numerics": _Extra(1, _unchanged, whole),
    "parameter_count": _Extra(None, _unchanged, whole),
    "curves": _Extra(
        None,
        lambda curves: {name: _encode_numbers(found) for name, found in curves.items()},
        lambda record: by_name(record, _decode_numbers),
    ),
    "layers_at_epochs": _Extra(
        None,
        lambda found: {str(epoch): _encode_layers(at) for epoch, at in found.items()},
        lambda record: {
            int(epoch): at for epoch, at in by_name(record, _decode_layers).items()
        },
    ),
    "metrics": _Extra(
        None,
        lambda metrics: {name: _encode_scores(by) for name, by in metrics.items()},
        lambda record: by_name(record, _decode_scores),
    ),
    "confusion": _Extra(None, encode_confusion, decode_confusion),
    "gate_counts": _Extra(
        None,
        lambda counts: [list(layer) for layer in counts],
        lambda record: listed(record, lambda layer: listed(layer, whole)),
    ),
    "training_nodes": _Extra(None, _unchanged, whole),
}
