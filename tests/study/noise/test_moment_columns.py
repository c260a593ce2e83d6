"""Values at fixed epochs and by every selection rule, in the CSV of the noise study."""

from pathlib import Path

import pytest
import torch

from tempergat.data import csbm
from tempergat.study.engine import Progress
from tempergat.study.noise.export import read_noise_csv
from tempergat.study.noise.moment_columns import layer_values
from tempergat.study.noise.plan import NoisePlan
from tempergat.study.noise.runs import run_noise
from tempergat.training import SELECTION_RULES, Recipe, Run, load_recipe

CPU = torch.device("cpu")
PLAN = NoisePlan.model_validate(
    {
        "datasets": ["csbm"],
        "seeds": 2,
        "first_seed": 40,
        "methods": ["gat", "temp_gated"],
        "gaussian": [0, 1, 4],
        "missing": [0, 0.4, 0.8],
        "tau": [1],
        "decay_temperature": [True],
        "matmul_precision": "high",
        "epochs": [2, 4, 50],
    }
)


def recipe() -> Recipe:
    found = load_recipe("demo")
    shorter = found.attention.model_copy(update={"epochs": 6})
    return found.model_copy(update={"attention": shorter})


def trained(path: Path, **options: object) -> list[Run]:
    graph = csbm(n=60, a=6, b=2, d=8, seed=1)
    return run_noise(graph, recipe(), PLAN, path, CPU, **options)  # type: ignore[arg-type]


def test_values_of_every_moment_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "csbm.csv"
    runs = {(r.method, r.condition, r.seed): r for r in trained(path)}
    read = read_noise_csv(path)
    assert {run.seed for run in read} == {40, 41}
    assert len(read) == len(runs) == 2 * 5 * 2
    for found in read:
        run = runs[found.method, found.condition, found.seed]
        for moment in (2, 4, "selected", *SELECTION_RULES):
            for quantity in ("temperature", "gate", "spread", "entropy"):
                values = layer_values(run, quantity, moment)
                has_it = found.method == "temp_gated" or quantity in (
                    "spread",
                    "entropy",
                )
                assert len(values) == (2 if has_it else 0)
                assert layer_values(found, quantity, moment) == pytest.approx(
                    values, rel=1e-4
                )
        assert layer_values(found, "temperature", 50) == ()
        for rule in SELECTION_RULES:
            assert vars(found.scores[rule]) == pytest.approx(vars(run.scores[rule]))


def test_a_study_that_goes_on_from_its_csv_keeps_all_columns(tmp_path: Path) -> None:
    def stop(progress: Progress) -> None:
        if progress.runs_done == 10:
            raise KeyboardInterrupt

    path = tmp_path / "csbm.csv"
    with pytest.raises(KeyboardInterrupt):
        trained(path, on_progress=stop)
    (tmp_path / "noise.sqlite").unlink()
    trained(path)
    other = tmp_path / "whole" / "csbm.csv"
    other.parent.mkdir()
    trained(other)
    without_time = [
        [
            [cell for place, cell in enumerate(line.split(",")) if place != time]
            for line in lines
        ]
        for lines in (path.read_text().splitlines(), other.read_text().splitlines())
        for time in [lines[0].split(",").index("time_s")]
    ]
    assert without_time[0] == without_time[1]
