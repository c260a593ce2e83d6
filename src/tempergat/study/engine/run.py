"""What is kept of a finished run, and how it is written as a row."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Scores:
    """A run's scores at one epoch, as fractions between 0 and 1."""

    epoch: int
    train: float
    val: float
    test: float


@dataclass(frozen=True)
class LayerRecord:
    """What a model had learned at one epoch, one value per layer.

    Attributes:
        temperatures: Each layer's temperature (its mean over heads where each head
            has one); empty without temperature.
        gate_means: Each layer's mean gate; empty without gates.
    """

    temperatures: tuple[float, ...] = ()
    gate_means: tuple[float, ...] = ()


@dataclass(frozen=True)
class Run:
    """A finished run: what it was, and what came of it.

    Attributes:
        fingerprint: Of the dataset with its splits.
        config: The full configuration, as plain JSON values.
        scores: Scores per selection rule; empty for a failed run.
        status: `done`, or `failed` with `failed_epoch` and `reason`.
        split: Which of the dataset's splits was used.
        selected: Learned values at the epoch chosen by the configured rule.
        last: Learned values at the last epoch.
        time_s: Wall time of this run: its group's, divided by the group's runs.
        memory_bytes: Peak memory of its group, where known.
        group_id: The group it was trained in.
    """

    dataset: str
    fingerprint: str
    method: str
    seed: int
    config: Mapping[str, Any]
    scores: Mapping[str, Scores] = field(default_factory=dict)
    status: Literal["done", "failed"] = "done"
    failed_epoch: int | None = None
    reason: str | None = None
    split: int = 0
    selected: LayerRecord = LayerRecord()
    last: LayerRecord = LayerRecord()
    time_s: float = 0.0
    memory_bytes: int | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    device: str = "cpu"
    group_id: int | None = None

    def __post_init__(self) -> None:
        if self.status == "done" and not self.scores:
            raise ValueError(f"run {self.method} seed {self.seed} is done but unscored")
        for rule, scores in self.scores.items():
            if not all(
                0.0 <= s <= 1.0 for s in (scores.train, scores.val, scores.test)
            ):
                raise ValueError(
                    f"{rule} scores of {self.method} seed {self.seed} are not "
                    f"fractions: {scores}"
                )
        if self.status == "failed" and (self.scores or not self.reason):
            raise ValueError(
                f"failed run {self.method} seed {self.seed} needs a reason, not scores"
            )

    @property
    def config_hash(self) -> str:
        """Hash of the configuration."""
        return config_hash(self.config)


def config_hash(config: Mapping[str, Any]) -> str:
    """Hash of a configuration given as plain JSON values, whatever its key order."""
    return hashlib.sha256(canonical_json(config).encode()).hexdigest()[:16]


def encode(run: Run) -> tuple[Any, ...]:
    """A run as the columns of the store's table, a checksum last."""
    record = {
        "config": dict(run.config),
        "scores": {rule: vars(scores) for rule, scores in run.scores.items()},
        "failed_epoch": run.failed_epoch,
        "reason": run.reason,
        "split": run.split,
        "selected": _encode_layers(run.selected),
        "last": _encode_layers(run.last),
        "time_s": run.time_s,
        "memory_bytes": run.memory_bytes,
        "versions": dict(run.versions),
        "device": run.device,
    }
    fields = [
        run.fingerprint,
        run.method,
        run.config_hash,
        run.seed,
        run.dataset,
        run.status,
        run.group_id,
        canonical_json(record),
    ]
    return (*fields, _checksum(fields))


def decode(row: Sequence[Any]) -> Run:
    """The run that `encode` made a row of.

    Raises:
        ValueError: The row does not match its checksum.
    """
    *fields, checksum = row
    if _checksum(fields) != checksum:
        raise ValueError(f"the row of {fields[1]} seed {fields[3]} was altered")
    fingerprint, method, _, seed, dataset, status, group_id, text = fields
    record = json.loads(text)
    return Run(
        dataset=dataset,
        fingerprint=fingerprint,
        method=method,
        seed=seed,
        config=record["config"],
        scores={rule: Scores(**values) for rule, values in record["scores"].items()},
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
    )


def canonical_json(value: Any) -> str:
    """JSON that is the same text for equal values."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _encode_layers(layers: LayerRecord) -> dict[str, list[float | None]]:
    # A run that diverged may have learned values that are not numbers.
    return {
        name: [value if math.isfinite(value) else None for value in values]
        for name, values in vars(layers).items()
    }


def _decode_layers(record: Mapping[str, list[float | None]]) -> LayerRecord:
    return LayerRecord(
        **{
            name: tuple(math.nan if value is None else value for value in values)
            for name, values in record.items()
        }
    )


def _checksum(fields: Sequence[Any]) -> str:
    return hashlib.sha256(canonical_json(list(fields)).encode()).hexdigest()[:16]
