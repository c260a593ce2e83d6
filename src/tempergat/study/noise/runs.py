"""Controlled noise: every method trained at every level, through the store.

Runs are stored in `noise.sqlite` beside the CSV files, which are written from it. The
store has its own name, because `compare` would take its runs without noise for its
own: they have the same settings, but were trained on dense features in larger groups.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from tempergat.base import UserError
from tempergat.data import Dataset, normalize_rows, to_dense
from tempergat.nn import METHODS
from tempergat.study.engine import OnProgress, Store, finished_runs, sweep
from tempergat.study.noise.features import NoisyFeatures
from tempergat.study.noise.plan import NoisePlan
from tempergat.study.noise.rows import SPLITS, NoiseRow, read_rows, write_rows
from tempergat.study.noise.sharpness import group_sharpness
from tempergat.training import (
    CLEAN,
    Condition,
    FeatureNoise,
    LayerRecord,
    Recipe,
    Run,
    RunConfig,
    Scores,
    SeedGroup,
    State,
    canonical_json,
    device_name,
    refuse_other_training,
)

STORE_NAME = "noise.sqlite"


def run_noise(
    dataset: Dataset,
    recipe: Recipe,
    plan: NoisePlan,
    path: Path,
    device: torch.device,
    on_progress: OnProgress | None = None,
) -> list[NoiseRow]:
    """Train the missing runs of the study of one dataset.

    Rows of the CSV count as done, whichever version wrote them. A study that is stopped
    continues from the store, and the CSV is written when it ends or stops.

    Args:
        dataset: The graph, homogeneous.
        recipe: The settings of the methods.
        plan: The conditions, methods and seeds.
        path: The CSV file of this dataset's runs.
        device: Where to train.
        on_progress: Called after every epoch and every group, for display.

    Returns:
        All rows of the file.

    Raises:
        UserError: Nothing can be trained with these arguments, or the file holds runs
            of other settings, data or devices.
    """
    configs = plan.configs(recipe)
    for config in configs:
        refuse_other_training(dataset, config)
    by_study = {study_hash(dataset, config, plan): config for config in configs}
    rows = {row.key: row for row in read_rows(path)}
    _refuse_other_settings(path, rows.values(), by_study)
    missing = len(_expected_keys(dataset, configs, plan) - rows.keys())
    if not missing:
        return list(rows.values())
    _refuse_other_devices(path, rows.values(), device, missing)
    noise = _feature_noise(dataset, plan, device)
    with Store(path.parent / STORE_NAME) as store:
        store.put_group(
            [_run_of(row, by_study[row.study], dataset, plan) for row in rows.values()]
        )
        arguments = (dataset, configs, range(plan.seeds), store, device)
        try:
            sweep(*arguments, on_progress, noise=noise)
        finally:
            for run in finished_runs(*arguments, noise=noise):
                row = _row_of(run)
                rows.setdefault(row.key, row)
            if rows:
                write_rows(path, rows.values())
    return list(rows.values())


def study_hash(dataset: Dataset, config: RunConfig, plan: NoisePlan) -> str:
    """Hash of the graph and the settings, as in the column `study` of the CSV."""
    return _study_hash(
        dataset.fingerprint,
        canonical_json(config.model_dump(mode="json")),
        plan.matmul_precision,
    )


def variant_of(config: RunConfig) -> str:
    """The method, and whether its theta is not decayed."""
    return NoiseRow(
        dataset="",
        method=config.method,
        decay_temperature=_decays_temperature(config.method, config.decay_temperature),
        condition=CLEAN,
        seed=0,
    ).variant


def _study_hash(fingerprint: str, config: str, precision: str) -> str:
    text = f"{fingerprint} {config} {precision}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _decays_temperature(method: str, decay: bool) -> bool | None:
    return decay if METHODS[method].temperature is not None else None


def _expected_keys(
    dataset: Dataset, configs: Sequence[RunConfig], plan: NoisePlan
) -> set[tuple[str, Condition, int, str]]:
    return {
        (variant_of(config), condition, seed, study_hash(dataset, config, plan))
        for config in configs
        for condition in plan.conditions
        for seed in range(plan.seeds)
    }


def _refuse_other_settings(
    path: Path, rows: Iterable[NoiseRow], known: Container[str]
) -> None:
    for row in rows:
        if row.study not in known:
            raise UserError(
                f"{path} holds {row.variant} with other settings or data "
                f"({row.study}); choose another folder with --out"
            )


def _refuse_other_devices(
    path: Path, rows: Iterable[NoiseRow], device: torch.device, missing: int
) -> None:
    others = sorted({row.device for row in rows} - {device_name(device)})
    if others:
        raise UserError(
            f"{path} holds runs made on {', '.join(others)}, and {missing} runs are "
            f"missing; runs of {device_name(device)} are not compared with them, so "
            "train on the same device, or choose another folder with --out"
        )


def _feature_noise(
    dataset: Dataset, plan: NoisePlan, device: torch.device
) -> FeatureNoise:
    # Drawn features are large, so those of one normalisation are held at a time.
    held: dict[bool, NoisyFeatures] = {}

    def features(
        config: RunConfig, conditions: Sequence[Condition], seeds: Sequence[int]
    ) -> Tensor:
        normalized = config.normalize_features
        if normalized not in held:
            held.clear()
            x = dataset.data.x
            clean = to_dense(normalize_rows(x) if normalized else x).float()
            held[normalized] = NoisyFeatures(clean, device)
        return held[normalized].of(conditions, seeds)

    return FeatureNoise(plan.conditions, features, _measure, plan.matmul_precision)


def _measure(group: SeedGroup, state: State) -> list[dict[str, tuple[float, ...]]]:
    found = group_sharpness(group, state)
    return [
        {"spread": tuple(spread), "entropy": tuple(entropy)}
        for spread, entropy in zip(
            found.spread.tolist(), found.entropy.tolist(), strict=True
        )
    ]


def _row_of(run: Run) -> NoiseRow:
    decay = _decays_temperature(run.method, run.config["decay_temperature"])
    config = canonical_json(dict(run.config))
    row = NoiseRow(
        dataset=run.dataset,
        method=run.method,
        decay_temperature=decay,
        condition=run.condition or CLEAN,
        seed=run.seed,
        reason=run.reason or "",
        time_s=run.time_s,
        study=_study_hash(run.fingerprint, config, run.matmul_precision),
        device=run.device,
        torch=run.versions["torch"],
    )
    if run.status == "failed":
        return row
    scores = run.scores[run.config["selection"]]
    layers = {
        "temperature": run.selected.temperatures,
        "gate": run.selected.gate_means,
        "spread": run.selected.spread,
        "entropy": run.selected.entropy,
    }
    return replace(
        row,
        epoch=scores.epoch,
        scores={split: getattr(scores, split) for split in SPLITS},
        layers={name: values for name, values in layers.items() if values},
    )


def _run_of(row: NoiseRow, config: RunConfig, dataset: Dataset, plan: NoisePlan) -> Run:
    """The run of a row that version 0.1.0 wrote, as far as the row tells."""
    run = Run(
        dataset=dataset.name,
        fingerprint=dataset.fingerprint,
        method=row.method,
        seed=row.seed,
        config=config.model_dump(mode="json"),
        status="failed",
        reason=row.reason or "not recorded",
        condition=None if row.condition == CLEAN else row.condition,
        matmul_precision=plan.matmul_precision,
        time_s=row.time_s,
        versions={"torch": row.torch},
        device=row.device,
        numerics=1,
    )
    if row.epoch is None:
        return run
    return replace(
        run,
        status="done",
        reason=None,
        scores={config.selection: Scores(row.epoch, **row.scores)},
        selected=LayerRecord(
            row.layers.get("temperature", ()),
            row.layers.get("gate", ()),
            row.layers.get("spread", ()),
            row.layers.get("entropy", ()),
        ),
    )
