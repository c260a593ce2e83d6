"""Controlled noise: every method trained at every level, through the store.

Runs are stored in `noise.sqlite` beside the CSV files, which are written from it. The
store has its own name, because `compare` would take its runs without noise for its
own: they have the same settings, but were trained on dense features in larger groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from tempergat.base import UserError
from tempergat.data import Dataset, to_dense
from tempergat.study.engine import OnProgress, Store, finished_runs, sweep
from tempergat.study.noise.export import (
    read_noise_csv,
    study_hash,
    study_of,
    write_noise_csv,
)
from tempergat.study.noise.features import NoisyFeatures
from tempergat.study.noise.plan import NoisePlan
from tempergat.study.noise.sharpness import group_sharpness
from tempergat.study.noise.variants import variant_of, variant_of_config
from tempergat.training import (
    CLEAN,
    SELECTION_RULES,
    Condition,
    FeatureNoise,
    MatmulPrecision,
    Recipe,
    Run,
    RunConfig,
    SeedGroup,
    State,
    canonical_json,
    device_name,
    refuse_other_training,
    refuse_typed,
    row_transform,
    settings_on,
)

NOISE_STORE = "noise.sqlite"

# Variant, condition and seed: no two runs of one file share them.
_Key = tuple[str, Condition | None, int]


def run_noise(
    dataset: Dataset,
    recipe: Recipe,
    plan: NoisePlan,
    path: Path,
    device: torch.device,
    on_progress: OnProgress | None = None,
    store: Path | None = None,
) -> list[Run]:
    """Train the missing runs of the study of one dataset.

    Rows of the CSV count as done. A study that is stopped continues from the store, and
    the CSV is written when it ends or stops.

    Args:
        dataset: The graph, homogeneous.
        recipe: The settings of the methods.
        plan: The conditions, methods and seeds.
        path: The CSV file of this dataset's runs.
        device: Where to train.
        on_progress: Called after every epoch and every group, for display.
        store: The file of the store; `noise.sqlite` beside the CSV when left out.

    Returns:
        All runs of the file.

    Raises:
        UserError: Nothing can be trained with these arguments, or the file holds runs
            of other settings, data or devices.
    """
    configs = [settings_on(config, dataset) for config in plan.configs(recipe)]
    for config in configs:
        refuse_other_training(dataset, config)
    refuse_typed(dataset, "the study of noise")
    by_study = {_study_hash(dataset, config, plan): config for config in configs}
    runs = {}
    for row in read_noise_csv(path):
        if study_of(row) not in by_study:
            raise UserError(
                f"{path} holds {variant_of(row)} with other settings or data "
                f"({study_of(row)}); choose another folder with --out"
            )
        run = _with_settings(row, by_study[study_of(row)], dataset, plan)
        runs[_key(run)] = run
    missing = len(_expected_keys(configs, plan) - runs.keys())
    if not missing:
        return list(runs.values())
    _refuse_other_devices(path, runs.values(), device, missing)
    noise = feature_noise(
        dataset, plan.conditions, plan.matmul_precision, device, plan.epochs
    )
    with Store(store or path.parent / NOISE_STORE) as stored:
        stored.put_group(list(runs.values()))
        arguments = (dataset, configs, plan.seed_numbers, stored, device)
        try:
            sweep(*arguments, on_progress, noise=noise)
        finally:
            for run in finished_runs(*arguments, noise=noise):
                runs.setdefault(_key(run), run)
            if runs:
                write_noise_csv(path, list(runs.values()), plan.epochs)
    return list(runs.values())


def _study_hash(dataset: Dataset, config: RunConfig, plan: NoisePlan) -> str:
    settings = canonical_json(config.model_dump(mode="json"))
    return study_hash(dataset.fingerprint, settings, plan.matmul_precision)


def _with_settings(
    run: Run, config: RunConfig, dataset: Dataset, plan: NoisePlan
) -> Run:
    """A run that was read from the CSV, with the settings that it was trained with."""
    scores = run.selected_scores
    selected = {} if scores is None else {config.selection: scores}
    known: Iterable[str] = SELECTION_RULES
    by_rule = {rule: run.scores[rule] for rule in known if rule in run.scores}
    return replace(
        run,
        fingerprint=dataset.fingerprint,
        config=config.model_dump(mode="json"),
        scores=by_rule | selected,
        matmul_precision=plan.matmul_precision,
    )


def _key(run: Run) -> _Key:
    return (variant_of(run), run.condition, run.seed)


def _expected_keys(configs: Sequence[RunConfig], plan: NoisePlan) -> set[_Key]:
    return {
        (
            variant_of_config(config),
            None if condition == CLEAN else condition,
            seed,
        )
        for config in configs
        for condition in plan.conditions
        for seed in plan.seed_numbers
    }


def _refuse_other_devices(
    path: Path, runs: Iterable[Run], device: torch.device, missing: int
) -> None:
    others = sorted({run.device for run in runs} - {device_name(device)})
    if others:
        raise UserError(
            f"{path} holds runs made on {', '.join(others)}, and {missing} runs are "
            f"missing; runs of {device_name(device)} are not compared with them, so "
            "train on the same device, or choose another folder with --out"
        )


def feature_noise(
    dataset: Dataset,
    conditions: tuple[Condition, ...],
    precision: MatmulPrecision,
    device: torch.device,
    epochs: tuple[int, ...] = (),
) -> FeatureNoise:
    """The noise of a study on one graph, and what is measured under it.

    Args:
        dataset: The graph.
        conditions: Kinds and levels of noise.
        precision: torch's precision of matrix products on a GPU.
        device: Where the features go.
        epochs: Epochs at which the learned values are recorded, beside the selected.
    """
    # Drawn features are large, so those of one normalisation are held at a time.
    held: dict[bool, NoisyFeatures] = {}

    def features(
        config: RunConfig, wanted: Sequence[Condition], seeds: Sequence[int]
    ) -> Tensor:
        normalized = config.normalize_features
        if normalized not in held:
            held.clear()
            x = dataset.data.x
            transform = row_transform(config, dataset.scaling.get(".x"), x.device)
            clean = to_dense(x if transform is None else transform(x)).float()
            held[normalized] = NoisyFeatures(clean, device)
        return held[normalized].of(wanted, seeds)

    return FeatureNoise(conditions, features, _measure, precision, epochs)


def _measure(group: SeedGroup, state: State) -> list[dict[str, tuple[float, ...]]]:
    found = group_sharpness(group, state)
    return [
        {"spread": tuple(spread), "entropy": tuple(entropy)}
        for spread, entropy in zip(
            found.spread.tolist(), found.entropy.tolist(), strict=True
        )
    ]
