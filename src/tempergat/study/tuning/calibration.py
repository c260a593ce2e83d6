"""A search for settings that the paper does not state, on its baselines only.

The three baselines are trained in every cell of a grid of settings, and the cell whose
mean test accuracies are nearest to the paper's is chosen. This uses test scores because
its aim is to find the paper's settings, not a good model. No variant takes part.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tempergat.base import UserError
from tempergat.nn import BACKBONES
from tempergat.stats import Summary, summarise, welch
from tempergat.study.engine import Run, config_hash
from tempergat.study.paper import PLAIN_METHODS, PaperCell
from tempergat.study.search import (
    CalibrationPlan,
    Grid,
    Setting,
)
from tempergat.training import RunConfig, load_recipe


@dataclass(frozen=True)
class Cell:
    """One combination of settings, and the baselines' scores with it.

    Attributes:
        settings: The values tried.
        baselines: Test scores in percent, by baseline.
        distances: Distance of each mean from the paper's, in standard errors of the
            difference; None where a run failed.
    """

    settings: Mapping[str, Setting]
    baselines: Mapping[str, Summary]
    distances: Mapping[str, float | None]

    @property
    def misfit(self) -> float:
        """Sum of the squared distances; infinite where a run failed."""
        return sum(
            float("inf") if distance is None else distance**2
            for distance in self.distances.values()
        )


@dataclass(frozen=True)
class DatasetCalibration:
    """All cells of one dataset, in the order of the grid."""

    dataset: str
    cells: tuple[Cell, ...]

    @property
    def chosen(self) -> Cell:
        """The cell with the least misfit; the first one of several equal ones."""
        return min(self.cells, key=lambda cell: cell.misfit)


def judge(
    dataset: str,
    runs: Sequence[Run],
    plan: CalibrationPlan,
    paper: Mapping[str, PaperCell],
) -> DatasetCalibration:
    """Compare finished runs with the paper's baselines, cell by cell.

    Args:
        dataset: Name of one of the plan's datasets.
        runs: Its runs; runs on other datasets are ignored.
        plan: The settings that were tried.
        paper: The paper's cells of the dataset by method.

    Raises:
        UserError: A run of the plan is missing.
    """
    found = {(run.config_hash, run.seed): run for run in runs if run.dataset == dataset}
    cells = []
    for settings, configs in _cells(plan.datasets[dataset]):
        baselines = {}
        for name, config in configs.items():
            key = config_hash(config.model_dump(mode="json"))
            missing = [s for s in plan.run_seeds if (key, s) not in found]
            if missing:
                raise UserError(
                    f"{len(missing)} calibration runs of {name} on {dataset} with "
                    f"{_in_words(settings)} are missing; run "
                    "`tempergat reproduce calibration --run`"
                )
            baselines[name] = _summary(
                [found[key, seed] for seed in plan.run_seeds], config.selection
            )
        distances = {
            name: _distance(summary, paper[name]) for name, summary in baselines.items()
        }
        cells.append(Cell(settings, baselines, distances))
    return DatasetCalibration(dataset, tuple(cells))


def grid_configs(plan: CalibrationPlan, dataset: str) -> list[RunConfig]:
    """Every configuration that is trained on one of the plan's datasets, each once."""
    configs = {
        config_hash(config.model_dump(mode="json")): config
        for _, cell in _cells(plan.datasets[dataset])
        for config in cell.values()
    }
    return list(configs.values())


def calibration_json(found: Sequence[DatasetCalibration]) -> dict[str, Any]:
    """Calibrations as plain JSON values."""
    return {
        "datasets": [
            {
                "dataset": one.dataset,
                "chosen": dict(one.chosen.settings),
                "cells": [
                    {
                        "settings": dict(cell.settings),
                        "baselines": {k: asdict(v) for k, v in cell.baselines.items()},
                        "standard_errors": dict(cell.distances),
                    }
                    for cell in one.cells
                ],
            }
            for one in found
        ]
    }


def _cells(
    grid: Grid,
) -> list[tuple[dict[str, Setting], dict[str, RunConfig]]]:
    """Each cell's settings with the configuration of each baseline."""
    recipe = load_recipe(grid.base)
    cells = []
    for settings in grid.cells():
        configs = {}
        for name in PLAIN_METHODS:
            of_method = settings
            if not BACKBONES[name].has_attention:
                of_method = {"normalize_features": settings["normalize_features"]}
            configs[str(name)] = recipe.config_for(name).with_changes(**of_method)
        cells.append((settings, configs))
    return cells


def _summary(runs: Sequence[Run], selection: str) -> Summary:
    done = [run for run in runs if run.status == "done"]
    return summarise(
        [100.0 * run.scores[selection].test for run in done],
        failed=len(runs) - len(done),
    )


def _distance(ours: Summary, paper: PaperCell) -> float | None:
    if ours.failed or ours.mean is None or ours.std is None:
        return None
    return welch(
        (ours.mean, ours.std, ours.runs), (paper.mean, paper.std, paper.runs)
    ).in_standard_errors


def _in_words(settings: Mapping[str, Setting]) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings.items())
