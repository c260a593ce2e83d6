"""Controlled noise: every method trained at every level, all seeds at once."""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tempergat.base.errors import UserError
from tempergat.base.locks import GroupLocks
from tempergat.data import Dataset, gaussian, missing, normalize_rows, to_dense
from tempergat.nn.methods import METHODS
from tempergat.study.noise.plan import Condition, NoisePlan
from tempergat.study.noise.rows import NoiseRow, read_rows, write_rows
from tempergat.study.noise.sharpness import group_sharpness
from tempergat.training import (
    OutOfMemory,
    Recipe,
    Run,
    RunConfig,
    explain_out_of_memory,
    free_memory,
)
from tempergat.training.hardware.grouping import bytes_per_seed
from tempergat.training.loop import Training
from tempergat.training.record import canonical_json
from tempergat.training.run import finished_runs
from tempergat.training.seeds import SeedGroup
from tempergat.training.task import refuse_other_training, task_of

_BUDGET_BYTES = {"cuda": 80 * 2**30}
_OTHER_BUDGET_BYTES = 2 * 2**30
_FLOAT_BYTES = 4
# Copies of a run's features alive at once: as they are, and after dropout.
_FEATURE_COPIES = 3


@dataclass(frozen=True)
class NoiseProgress:
    """Where a study of one dataset stands.

    Attributes:
        dataset: Its name.
        variant: What trains now, or has just been kept.
        runs_done: Runs in the file.
        runs: Runs of the whole study of this dataset.
        epoch: Epochs the runs at hand have trained; 0 once they are kept.
        epochs: Epochs they will train.
        time_left_s: Estimate, once the runs are kept.
    """

    dataset: str
    variant: str
    runs_done: int
    runs: int
    epoch: int = 0
    epochs: int = 0
    time_left_s: float | None = None


OnNoiseProgress = Callable[[NoiseProgress], None]


def run_noise(
    dataset: Dataset,
    recipe: Recipe,
    plan: NoisePlan,
    path: Path,
    device: torch.device,
    on_progress: OnNoiseProgress | None = None,
) -> list[NoiseRow]:
    """Trains what a file does not hold yet of the study of one dataset.

    The file is whole after every group of runs, so a study that is stopped goes on
    from there.

    Args:
        dataset: The graph, homogeneous.
        recipe: The settings of the methods.
        plan: What to train.
        path: The CSV file of this dataset's runs.
        device: Where to train.
        on_progress: Called after every epoch and every group.

    Returns:
        All rows of the file.

    Raises:
        UserError: Nothing can be trained so, the file holds other runs than these, or
            another process writes it.
    """
    for config in plan.configs(recipe):
        refuse_other_training(dataset, config)
    with GroupLocks(_lock_of(path)) as locks:
        if not locks.acquire(0, wait=False):
            raise UserError(
                f"another process writes {path}; wait for it, or choose another folder "
                "with --out"
            )
        study = _NoiseStudy(dataset, recipe, plan, path, device, on_progress)
        with _matmul_precision(plan, device):
            study.run()
    return study.rows


def _lock_of(path: Path) -> Path:
    """Where the lock of a file is, away from results that are published."""
    name = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"tempergat-noise-{name}"


class _NoiseStudy:
    def __init__(
        self,
        dataset: Dataset,
        recipe: Recipe,
        plan: NoisePlan,
        path: Path,
        device: torch.device,
        on_progress: OnNoiseProgress | None,
    ) -> None:
        self._dataset = dataset
        self._plan = plan
        self._path = path
        self._device = device
        self._on_progress = on_progress or (lambda progress: None)
        self._configs = plan.configs(recipe)
        self._seeds = range(plan.seeds)
        self.rows = read_rows(path)
        self._refuse_other_runs()
        self._features: dict[bool, NoisyFeatures] = {}
        self._work_done = 0
        self._time_s = 0.0

    def _refuse_other_runs(self) -> None:
        known = {self._study(config) for config in self._configs}
        for row in self.rows:
            if row.study not in known:
                raise UserError(
                    f"{self._path} holds {row.variant} with other settings or data "
                    f"({row.study}); choose another folder with --out"
                )

    def _study(self, config: RunConfig) -> str:
        facts = canonical_json(config.model_dump(mode="json"))
        text = f"{self._dataset.fingerprint} {facts} {self._plan.matmul_precision}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def run(self) -> None:
        for config in self._configs:
            left = self._missing(config)
            most = runs_at_once(self._dataset, config, self._device)
            size = max(1, most // len(self._seeds))
            for start in range(0, len(left), size):
                # One condition alone may still be too much for all seeds at once.
                for first in range(0, len(self._seeds), most):
                    self._train_what_fits(
                        config,
                        left[start : start + size],
                        self._seeds[first : first + most],
                    )

    def _train_what_fits(
        self, config: RunConfig, conditions: Sequence[Condition], seeds: Sequence[int]
    ) -> None:
        """Trains all runs at once or, where memory does not suffice, by halves."""
        try:
            self._train(config, conditions, seeds)
            return
        except OutOfMemory:
            if len(conditions) == len(seeds) == 1:
                raise
        free_memory(self._device)
        if len(conditions) > 1:
            half = len(conditions) // 2
            parts = [(conditions[:half], seeds), (conditions[half:], seeds)]
        else:
            half = len(seeds) // 2
            parts = [(conditions, seeds[:half]), (conditions, seeds[half:])]
        for part in parts:
            self._train_what_fits(config, *part)

    def _missing(self, config: RunConfig) -> list[Condition]:
        """Conditions of which some seed is not in the file."""
        done = {row.key for row in self.rows}
        return [
            condition
            for condition in self._plan.conditions
            if any(
                self._row(config, condition, seed).key not in done
                for seed in self._seeds
            )
        ]

    def _train(
        self, config: RunConfig, conditions: Sequence[Condition], seeds: Sequence[int]
    ) -> None:
        start = time.perf_counter()
        runs = len(seeds) * len(conditions)
        with explain_out_of_memory(config, runs, self._device):
            group = SeedGroup(
                task_of(self._dataset, config, self._device),
                config,
                seeds,
                self._noisy(config).of(conditions, seeds),
            )
            training = Training(group, config)
            training.run(on_epoch=lambda epoch: self._report(config, epoch))
            results = finished_runs(training, self._dataset, start)
            sharpness = group_sharpness(group, training.best)
        spread, entropy = sharpness.spread.tolist(), sharpness.entropy.tolist()
        kept = {row.key: row for row in self.rows}
        for run, result in enumerate(results):
            row = self._row(
                config,
                conditions[run % len(conditions)],
                result.seed,
                result,
                {"spread": tuple(spread[run]), "entropy": tuple(entropy[run])},
            )
            kept[row.key] = row
        self.rows = list(kept.values())
        write_rows(self._path, self.rows)
        self._work_done += runs * config.epochs
        self._time_s += time.perf_counter() - start
        self._report(config, 0)

    def _noisy(self, config: RunConfig) -> NoisyFeatures:
        normalized = config.normalize_features
        if normalized not in self._features:
            x = self._dataset.data.x
            clean = to_dense(normalize_rows(x) if normalized else x).float()
            self._features = {normalized: NoisyFeatures(clean, self._device)}
        return self._features[normalized]

    def _row(
        self,
        config: RunConfig,
        condition: Condition,
        seed: int,
        result: Run | None = None,
        sharpness: dict[str, tuple[float, ...]] | None = None,
    ) -> NoiseRow:
        tempered = METHODS[config.method].temperature is not None
        facts: dict[str, Any] = {
            "dataset": self._dataset.name,
            "method": config.method,
            "decay_temperature": config.decay_temperature if tempered else None,
            "condition": condition,
            "seed": seed,
            "study": self._study(config),
        }
        if result is None:
            return NoiseRow(**facts)
        facts |= {
            "time_s": result.time_s,
            "device": result.device,
            "torch": result.versions["torch"],
        }
        if result.status == "failed":
            return NoiseRow(**facts, reason=result.reason or "")
        layers = {
            "temperature": result.selected.temperatures,
            "gate": result.selected.gate_means,
            **(sharpness or {}),
        }
        return NoiseRow(
            **facts,
            epoch=result.selected_epoch,
            scores={
                split: getattr(result.scores[config.selection], split)
                for split in ("train", "val", "test")
            },
            layers={name: values for name, values in layers.items() if values},
        )

    def _report(self, config: RunConfig, epoch: int) -> None:
        self._on_progress(
            NoiseProgress(
                dataset=self._dataset.name,
                variant=self._row(config, self._plan.conditions[0], 0).variant,
                runs_done=len(self.rows),
                runs=len(self._configs) * len(self._plan.conditions) * len(self._seeds),
                epoch=epoch,
                epochs=config.epochs,
                time_left_s=self._time_left_s() if epoch == 0 else None,
            )
        )

    def _time_left_s(self) -> float:
        left = sum(
            len(self._missing(config)) * len(self._seeds) * config.epochs
            for config in self._configs
        )
        return self._time_s / self._work_done * left


class NoisyFeatures:
    """Features of every seed under several conditions, on a device.

    Each seed has noise of its own; under one kind of noise a seed's levels share what
    is drawn, so that only the strength differs between them.

    Args:
        clean: The features, after the recipe's normalisation.
        device: Where they go.
    """

    def __init__(self, clean: Tensor, device: torch.device) -> None:
        self._clean = clean
        self._device = device
        self.unit = float(clean.double().square().mean().sqrt())
        self._held: tuple[tuple[Condition, ...], tuple[int, ...]] = ((), ())
        self._values = torch.empty(0)

    def of(self, conditions: Sequence[Condition], seeds: Sequence[int]) -> Tensor:
        """[seeds, conditions, nodes, features]; what was drawn last is kept."""
        held, held_seeds = self._held
        if tuple(seeds) != held_seeds or not set(conditions) <= set(held):
            self._values = torch.empty(0)
            self._values = self._draw(conditions, seeds).to(self._device)
            self._held = (tuple(conditions), tuple(seeds))
        held, _ = self._held
        if tuple(conditions) == held:
            return self._values
        return self._values[:, [held.index(condition) for condition in conditions]]

    def _draw(self, conditions: Sequence[Condition], seeds: Sequence[int]) -> Tensor:
        nodes, features = self._clean.shape
        # Node by node, as all runs' features are read.
        drawn = torch.empty(nodes, len(seeds), len(conditions), features)

        def fill(place: tuple[int, int]) -> None:
            row, column = place
            drawn[:, row, column] = noisy(
                self._clean, conditions[column], self.unit, seeds[row]
            )

        places = [(r, c) for r in range(len(seeds)) for c in range(len(conditions))]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(fill, places))
        return drawn.permute(1, 2, 0, 3)


def noisy(clean: Tensor, condition: Condition, unit: float, seed: int) -> Tensor:
    """Features under one condition.

    Args:
        clean: The features.
        condition: Kind and strength, in units of `unit`.
        unit: The root mean square of the features.
        seed: Seed of the noise.
    """
    if condition.noise == "gaussian":
        return gaussian(clean, condition.level * unit, seed)
    if condition.noise == "missing":
        tau = condition.tau or 0.0
        return missing(clean, condition.level, tau * unit, seed)[0]
    return clean


def runs_at_once(dataset: Dataset, config: RunConfig, device: torch.device) -> int:
    """How many runs with features of their own fit a device, by estimate."""
    budget = _BUDGET_BYTES.get(device.type, _OTHER_BUDGET_BYTES)
    features = dataset.data.x.numel() * _FLOAT_BYTES * _FEATURE_COPIES
    return max(1, int(budget // (bytes_per_seed(dataset, config) + features)))


@contextmanager
def _matmul_precision(plan: NoisePlan, device: torch.device) -> Iterator[None]:
    if device.type != "cuda":
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(plan.matmul_precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
