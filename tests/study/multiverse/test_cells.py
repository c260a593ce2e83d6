"""Which cells are near the paper's baselines, and what is trained after that."""

from pathlib import Path

import numpy as np
import pytest

from tempergat.study.engine import Run
from tempergat.study.multiverse import (
    Cell,
    MultiversePlan,
    RunIndex,
    Training,
    baseline_stage,
    chosen_trainings,
    is_near,
    is_rejected,
    judge_cells,
    load_multiverse,
    variant_stages,
)
from tempergat.study.paper import PaperCell
from tests.support.made_up_runs import run

RESULTS = Path(__file__).resolve().parents[3] / "results"
RAW = Training(False, "attention too", 1e-3)
FAR = Training(True, "attention too", 1e-3)


@pytest.fixture
def plan() -> MultiversePlan:
    return load_multiverse(RESULTS).model_copy(
        update={"seeds": 20, "weight_decay": [1e-3, 2e-3]}
    )


@pytest.fixture
def paper(plan: MultiversePlan) -> dict[str, dict[str, PaperCell]]:
    return {
        dataset: {
            method: PaperCell(dataset, method, "accuracy", 80.0, 1.0, 50)
            for method in plan.baselines
        }
        for dataset in plan.datasets
    }


def runs_of(
    plan: MultiversePlan, training: Training, dataset: str, mean: float
) -> list[Run]:
    """Runs of both baselines with this mean and a standard deviation of 1 point."""
    noise = np.random.default_rng(0).normal(0.0, 1.0, plan.seeds)
    noise = (noise - noise.mean()) / noise.std(ddof=1)
    return [
        run(method, seed, (mean + noise[place]) / 100, dataset, config=config)
        for method in plan.baselines
        for config in [plan.config(training, dataset, method).model_dump(mode="json")]
        for place, seed in enumerate(plan.run_seeds)
    ]


def cell_of(cells: list[Cell], training: Training) -> Cell:
    return next(
        cell
        for cell in cells
        if cell.training == training and cell.selection == "best_val_accuracy"
    )


def test_the_plan_has_12_trainings_with_settings_that_differ(
    plan: MultiversePlan,
) -> None:
    whole = load_multiverse(RESULTS)
    trainings = list(whole.trainings())
    configs = {whole.config(training, "cora", "gat") for training in trainings}
    assert len(trainings) == len(configs) == 12
    assert whole.run_seeds == range(5000, 5050)


def test_equal_means_and_deviations_are_not_rejected(
    plan: MultiversePlan, paper: dict[str, dict[str, PaperCell]]
) -> None:
    runs = [r for d in plan.datasets for r in runs_of(plan, RAW, d, 80.0)]
    cell = cell_of(judge_cells(plan, RunIndex(runs), paper), RAW)
    assert cell.misfit == pytest.approx(0.0, abs=1e-9)
    assert cell.p == pytest.approx(1.0)
    assert not is_rejected(cell, plan)
    assert is_near(cell, plan)
    assert cell.not_run == 0


def test_the_misfit_counts_means_and_deviations(
    plan: MultiversePlan, paper: dict[str, dict[str, PaperCell]]
) -> None:
    runs = [r for d in plan.datasets for r in runs_of(plan, RAW, d, 81.0)]
    cell = cell_of(judge_cells(plan, RunIndex(runs), paper), RAW)
    # One point is 1 / sqrt(1/20 + 1/50) standard errors for each of six means.
    assert cell.misfit == pytest.approx(6 / (1 / 20 + 1 / 50))
    wide = {
        dataset: {
            method: PaperCell(dataset, method, "accuracy", 81.0, 2.0, 50)
            for method in plan.baselines
        }
        for dataset in plan.datasets
    }
    cell = cell_of(judge_cells(plan, RunIndex(runs), wide), RAW)
    error = 1 / (2 * 19) + 1 / (2 * 49)
    assert cell.misfit == pytest.approx(6 * np.log(2) ** 2 / error)
    assert is_rejected(cell, plan)


def test_a_far_training_is_not_run_on_the_next_dataset(
    plan: MultiversePlan, paper: dict[str, dict[str, PaperCell]]
) -> None:
    runs = runs_of(plan, RAW, "cora", 80.5) + runs_of(plan, FAR, "cora", 90.0)
    cells = judge_cells(plan, RunIndex(runs), paper)
    assert cell_of(cells, FAR).not_run == 4
    stage = baseline_stage(plan, "citeseer", cells)
    assert stage is not None
    assert plan.config(RAW, "citeseer", "gat") in stage.configs
    assert plan.config(FAR, "citeseer", "gat") not in stage.configs
    first = baseline_stage(plan, "cora", cells)
    assert first is not None
    assert len(first.configs) == 2 * len(list(plan.trainings()))


def test_variants_are_run_in_near_trainings_and_at_least_in_two(
    plan: MultiversePlan, paper: dict[str, dict[str, PaperCell]]
) -> None:
    near, far = list(plan.trainings())[:2], list(plan.trainings())[2:4]
    runs = []
    for training, mean in ((near[1], 80.0), (near[0], 80.3), (far[0], 95.0)):
        runs += [r for d in plan.datasets for r in runs_of(plan, training, d, mean)]
    cells = judge_cells(plan, RunIndex(runs), paper)
    assert chosen_trainings(plan, cells) == [near[1], near[0]]
    only_far = [cell for cell in cells if cell.training == far[0]]
    assert chosen_trainings(plan, only_far) == [far[0]]


def test_variations_change_the_methods_that_have_the_setting(
    plan: MultiversePlan,
) -> None:
    stages = list(variant_stages(plan, list(plan.trainings())[:2]))
    configs = [config for stage in stages for config in stage.configs]
    assert len(set(configs)) == len(configs)
    undecayed = [c.method for c in configs if not c.decay_temperature]
    assert set(undecayed) == {m for m in plan.variants if "temp" in m}
    assert all("gated" in c.method for c in configs if not c.gate_last_layer)
    # The largest dataset's variations come last.
    assert stages[-1].dataset == plan.datasets[-1]


def test_a_cell_with_an_unfinished_seed_does_not_count_as_run(
    plan: MultiversePlan, paper: dict[str, dict[str, PaperCell]]
) -> None:
    runs = runs_of(plan, RAW, "cora", 80.0)
    assert judge_cells(plan, RunIndex(runs[:5]), paper) == []
