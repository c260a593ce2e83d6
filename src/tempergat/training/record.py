"""The record of one finished run: its settings, its scores and how it was made."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from tempergat.training.metrics import metric_of_settings

# Raised whenever a change of the code changes the results of training. Runs with
# different numbers are never compared with each other. 3 were rankings by 2.
NUMERICS = 4
# The same on GPUs.
_NUMERICS_OF_GPUS = 7
# Confusion matrices of more classes keep only the cells that are not 0.
_MOST_FULL_ROWS = 100
# Far above what is trained; a damaged file may say more.
_MOST_CLASSES = 10_000

NoiseKind = Literal["none", "gaussian", "missing", "both"]
MatmulPrecision = Literal["highest", "high"]
Status = Literal["done", "failed"]


def numerics_of(device: str, config: Mapping[str, Any]) -> int:
    """The numerics of runs that this code trains.

    Args:
        device: The name of the device.
        config: The settings of the runs.
    """
    numerics = _NUMERICS_OF_GPUS if device.startswith("cuda") else NUMERICS
    # Rankings were once by float32 probabilities, and are by log-odds.
    return numerics + (config.get("metric") in ("roc_auc", "average_precision"))


@dataclass(frozen=True)
class Condition:
    """What was done to the features and the model of a run before its training.

    sigma and tau are in units of the root mean square of the feature matrix.

    Attributes:
        noise: `gaussian` noise on every coordinate, `missing` coordinates, `both` in
            this order, or `none`.
        level: sigma of Gaussian noise alone; else rho, the share of missing
            coordinates.
        tau: For missing coordinates: the standard deviation of the noise that replaces
            them.
        change: The name of another change of the features or the model.
        sigma: For both: that of Gaussian noise.
    """

    noise: NoiseKind = "none"
    level: float = 0.0
    tau: float | None = None
    change: str | None = None
    sigma: float | None = None

    @property
    def facts(self) -> dict[str, Any]:
        """The attributes as JSON values; change and sigma only where there is one."""
        facts = asdict(self)
        # Equal conditions have one text: 1 and 1.0 are two in JSON.
        facts["level"] = float(self.level)
        facts["tau"] = None if self.tau is None else float(self.tau)
        facts["sigma"] = None if self.sigma is None else float(self.sigma)
        absent = {k for k in ("change", "sigma") if not facts[k]}
        return {name: fact for name, fact in facts.items() if name not in absent}

    @property
    def gaussian_sigma(self) -> float:
        """sigma of the Gaussian noise, alone or with missing coordinates; 0 if none."""
        return self.level if self.noise == "gaussian" else self.sigma or 0.0

    @property
    def file_name(self) -> str:
        """A part of the names of files, which no other condition has."""
        numbers = (self.level, self.tau, self.sigma)
        level = "_".join([self.noise, *(f"{each:g}" for each in numbers if each)])
        return re.sub(r"[^\w.]+", "_", self.change or level)

    @property
    def words(self) -> str:
        """The condition in words."""
        if self.change is not None:
            return f"the preparation {self.change}"
        parts = []
        if self.gaussian_sigma:
            deviation = f"{self.gaussian_sigma:g} times their RMS"
            parts.append(f"Gaussian noise on the features, {deviation}")
        if self.noise in ("missing", "both"):
            instead = f"noise of {self.tau:g} times their RMS" if self.tau else "0"
            lost = f"{self.level:.4g} of the feature values lost"
            parts.append(f"{lost}, {instead} in place")
        return "; then ".join(parts) or "no noise"


CLEAN = Condition()


@dataclass(frozen=True)
class Scores:
    """A run's scores at one epoch, as its metric computes them.

    The training score is None where it was not recorded.
    """

    epoch: int
    train: float | None
    val: float
    test: float


@dataclass(frozen=True)
class LayerRecord:
    """What a model had learned at one epoch, one value per layer.

    Attributes:
        temperatures: Each layer's temperature (its mean over heads where each head
            has one); empty without temperature.
        gate_means: Each layer's mean gate; empty without gates.
        spread: Standard deviation of e/T over a node's edges, mean over nodes and
            heads; empty where it was not measured.
        entropy: Entropy of the attention weights over the logarithm of the degree,
            mean over nodes and heads; empty where it was not measured.
    """

    temperatures: tuple[float, ...] = ()
    gate_means: tuple[float, ...] = ()
    spread: tuple[float, ...] = ()
    entropy: tuple[float, ...] = ()


class SparseCounts(Sequence[tuple[int, ...]]):
    """The rows of a confusion matrix of which only cells that are not 0 are kept.

    Args:
        classes: Number of rows, and of columns.
        cells: True class, predicted class and count of each such cell.

    Attributes:
        rows: For each true class, the counts by predicted class.

    Raises:
        ValueError: A cell is not in the matrix, or there are too many classes.
    """

    def __init__(self, classes: int, cells: Iterable[Sequence[int]]) -> None:
        if classes > _MOST_CLASSES:
            raise ValueError(f"a confusion matrix has {classes} classes")
        self.rows: tuple[dict[int, int], ...] = tuple({} for _ in range(classes))
        for cell in cells:
            if len(cell) != 3 or min(cell) < 0 or max(cell[:2]) >= classes:
                raise ValueError("a confusion matrix has a cell outside of it")
            true, predicted, count = cell
            self.rows[true][predicted] = count

    @classmethod
    def of(cls, counts: np.ndarray) -> SparseCounts:
        """The matrix as sparse rows."""
        cells = np.stack([*counts.nonzero(), counts[counts != 0]], 1)
        return cls(len(counts), cells.tolist())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        counts = np.zeros((len(self), len(self)), dtype or np.int64)
        for row, cells in zip(counts, self.rows, strict=True):
            row[list(cells)] = list(cells.values())
        return counts

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, true: Any) -> Any:
        row = [0] * len(self)
        for predicted, count in self.rows[true].items():
            row[predicted] = count
        return tuple(row)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SparseCounts) and self.rows == other.rows


def confusion_rows(counts: np.ndarray) -> Sequence[tuple[int, ...]]:
    """A confusion matrix as a run keeps it; of many classes, as sparse rows."""
    if len(counts) > _MOST_FULL_ROWS:
        return SparseCounts.of(counts)
    return tuple(map(tuple, counts.tolist()))


def confusion_as_json(counts: Sequence[Sequence[int]] | None) -> Any:
    """All rows; the cells of sparse ones, as true class, predicted class and count."""
    if not isinstance(counts, SparseCounts):
        return counts and [list(row) for row in counts]
    cells = [
        [true, predicted, count]
        for true, row in enumerate(counts.rows)
        for predicted, count in row.items()
    ]
    return {"classes": len(counts), "cells": cells}


@dataclass(frozen=True)
class Run:
    """A finished run.

    The last seven attributes are None where nothing was recorded.

    Attributes:
        fingerprint: Hash of the dataset with its splits.
        config: The full configuration, as plain JSON values.
        scores: Scores per selection rule; empty for a failed run.
        status: `done`, or `failed` with `failed_epoch` and `reason`.
        failed_epoch: The first epoch, from 1, whose loss was not a finite number.
        condition: What was done before the training; None for nothing.
        matmul_precision: torch's precision of float32 matrix products on a GPU.
        split: Which of the dataset's splits was used.
        selected: Learned values at the epoch chosen by the configured rule.
        last: Learned values at the last epoch.
        time_s: Wall time of this run: its group's, divided by the group's runs.
        memory_bytes: Peak memory of its group, where known.
        versions: Versions of the packages that took part.
        device: `cpu`, or the kind and name of the GPU.
        numerics: `numerics_of` its device, of the code that trained it.
        group_id: The group it was trained in.
        parameter_count: Number of trained parameters.
        curves: Values at some epochs, by name: `epoch`, `loss`, `val_loss` and the
            splits.
        layers_at_epochs: Learned values at fixed epochs, at the epoch of each selection
            rule and at the last one.
        metrics: Scores by further metric, then by selection rule: the configured one
            alone.
        confusion: Counts of test nodes at the selected epoch: one row per true class,
            one column per predicted class; tuples, or `SparseCounts` of many classes.
        gate_counts: For each layer, how many gates lie in each of equal parts from 0 to
            1 at the selected epoch.
        training_nodes: Number of labelled training nodes.
        shares: As of `Dataset`: what its split shares with others.
    """

    dataset: str
    fingerprint: str
    method: str
    seed: int
    config: Mapping[str, Any]
    scores: Mapping[str, Scores] = field(default_factory=dict)
    status: Status = "done"
    failed_epoch: int | None = None
    reason: str | None = None
    condition: Condition | None = None
    matmul_precision: MatmulPrecision = "highest"
    split: int = 0
    selected: LayerRecord = LayerRecord()
    last: LayerRecord = LayerRecord()
    time_s: float = 0.0
    memory_bytes: int | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    device: str = "cpu"
    numerics: int = NUMERICS
    group_id: int | None = None
    parameter_count: int | None = None
    curves: Mapping[str, Sequence[float]] | None = None
    layers_at_epochs: Mapping[int, LayerRecord] | None = None
    metrics: Mapping[str, Mapping[str, Scores]] | None = None
    confusion: Sequence[Sequence[int]] | None = None
    gate_counts: Sequence[Sequence[int]] | None = None
    training_nodes: int | None = None
    shares: tuple[bool, bool] | None = None

    def __post_init__(self) -> None:
        if self.condition == CLEAN:
            raise ValueError("the condition of a run without a change is None")
        if self.status == "done" and not self.scores:
            raise ValueError(f"run {self.method} seed {self.seed} is done but unscored")
        metric = metric_of_settings(self.config.get("metric"))
        low, high = metric.bounds
        for rule, scores in self.scores.items():
            train = scores.val if scores.train is None else scores.train
            shown = map(metric.shown, (train, scores.val, scores.test))
            if not all(low <= score <= high for score in shown):
                raise ValueError(
                    f"{rule} scores of {self.method} seed {self.seed} are no "
                    f"{metric.words}: {scores}"
                )
        if self.status == "failed" and (self.scores or not self.reason):
            raise ValueError(
                f"failed run {self.method} seed {self.seed} needs a reason, not scores"
            )

    @property
    def config_hash(self) -> str:
        """Hash of the configuration and the condition."""
        return config_hash(self.config, self.condition, self.matmul_precision)

    @property
    def selected_scores(self) -> Scores | None:
        """Scores at the epoch chosen by the configured rule; None for a failed run."""
        if self.status == "failed":
            return None
        return self.scores[self.config["selection"]]

    @property
    def selected_epoch(self) -> int | None:
        """The epoch chosen by the configured rule, from 1; None for a failed run."""
        scores = self.selected_scores
        return None if scores is None else scores.epoch


def config_hash(
    config: Mapping[str, Any],
    condition: Condition | None = None,
    matmul_precision: MatmulPrecision = "highest",
) -> str:
    """Hash of a configuration and a condition, whatever the order of the keys.

    The condition and the precision take part only where something was done and where
    the precision is not full.

    Args:
        config: Plain JSON values.
        condition: What is done before the training.
        matmul_precision: torch's precision of float32 matrix products on a GPU.
    """
    content = dict(config)
    if condition is not None:
        content["condition"] = condition.facts
    if matmul_precision != "highest":
        content["matmul_precision"] = matmul_precision
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()[:16]


def canonical_json(value: Any) -> str:
    """JSON that is the same text for equal values."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
