"""Settings are found on the baselines alone, by a rule fixed beforehand."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import yaml

from tempergat.base.errors import UserError
from tempergat.study.engine import Run, Store, export_runs
from tempergat.study.paper import PaperCell, read_paper
from tempergat.study.search.plans import (
    CalibrationPlan,
    load_calibration,
    load_search,
    search_names,
)
from tempergat.study.tuning.calibration import grid_configs, judge
from tempergat.study.tuning.calibration_page import reproduce_calibration
from tempergat.training import load_recipe
from tests.support.made_up_runs import failed_run, run
from tests.support.tiny_graph import write_recipe

RESULTS = Path(__file__).parents[3] / "results"
PAPER = {
    name: PaperCell("csbm", name, "accuracy", mean, 1.0, 50)
    for name, mean in (("gcn", 80.0), ("gat", 81.0), ("gatv2", 82.0))
}
CELLS = [
    (normalize, decay, dropout)
    for normalize in (False, True)
    for decay in (0.0005, 0.002)
    for dropout in (0.0, 0.6)
]


def write_plan(
    folder: Path, weight_decay: Sequence[float] = (0.0005, 0.002), **changes: object
) -> Path:
    recipe = write_recipe(folder / "recipe.yaml")
    values = {
        "criterion": "least_sum_of_squared_standard_errors",
        "first_seed": 100,
        "seeds": 3,
        "datasets": {
            "csbm": {
                "base": str(recipe),
                "normalize_features": [False, True],
                "weight_decay": list(weight_decay),
                "attention_dropout": [0.0, 0.6],
            }
        },
    } | changes
    path = folder / "plan.yaml"
    path.write_text(yaml.safe_dump(values))
    return path


@pytest.fixture
def plan(tmp_path: Path) -> CalibrationPlan:
    return load_calibration(write_plan(tmp_path))


def made_up_runs(
    plan: CalibrationPlan,
    dataset: str,
    offsets: dict[tuple[bool, float, float], float],
    paper: dict[str, PaperCell] = PAPER,
) -> list[Run]:
    """Runs of every cell, gat and gatv2 at given distances from the paper's mean."""
    recipe = load_recipe(plan.datasets[dataset].base)
    noise = np.linspace(-0.01, 0.01, plan.seeds)
    runs = []
    for (normalize, decay, dropout), offset in offsets.items():
        for name in ("gat", "gatv2", "gcn"):
            changes = {"normalize_features": normalize}
            if name != "gcn":
                changes |= {"weight_decay": decay, "attention_dropout": dropout}
            config = recipe.config_for(name).with_changes(**changes)
            mean = paper[name].mean + (0.0 if name == "gcn" else offset)
            runs += [
                run(
                    name,
                    seed,
                    mean / 100 + value,
                    dataset,
                    config.model_dump(mode="json"),
                )
                for seed, value in zip(plan.run_seeds, noise, strict=True)
            ]
    return runs


def test_the_cell_nearest_the_papers_baselines_is_chosen(plan: CalibrationPlan) -> None:
    far = dict.fromkeys(CELLS, 3.0) | {CELLS[5]: -0.4, CELLS[2]: 0.5}
    found = judge("csbm", made_up_runs(plan, "csbm", far), plan, PAPER)
    assert [tuple(cell.settings.values()) for cell in found.cells] == CELLS
    assert tuple(found.chosen.settings.values()) == CELLS[5]
    # Our three scores and the paper's fifty, each with a standard deviation of 1.
    error = np.sqrt(1.0 / 3 + 1.0 / 50)
    assert found.chosen.distances == pytest.approx(
        {"gcn": 0.0, "gat": -0.4 / error, "gatv2": -0.4 / error}
    )
    assert found.chosen.misfit == pytest.approx(2 * (0.4 / error) ** 2)


def test_the_simpler_of_equal_cells_is_chosen(plan: CalibrationPlan) -> None:
    equal = dict.fromkeys(CELLS, 3.0) | {CELLS[3]: 0.0, CELLS[6]: 0.0}
    found = judge("csbm", made_up_runs(plan, "csbm", equal), plan, PAPER)
    assert tuple(found.chosen.settings.values()) == CELLS[3]


def test_a_cell_with_a_failed_run_is_not_chosen(plan: CalibrationPlan) -> None:
    runs = made_up_runs(plan, "csbm", dict.fromkeys(CELLS, 3.0) | {CELLS[4]: 0.0})
    nearest = next(
        index
        for index, one in enumerate(runs)
        if one.method == "gat"
        and one.config["normalize_features"]
        and one.config["weight_decay"] == 0.0005
        and one.config["attention_dropout"] == 0.0
    )
    bad = runs[nearest]
    runs[nearest] = failed_run("gat", bad.seed, dataset="csbm", config=bad.config)
    found = judge("csbm", runs, plan, PAPER)
    assert found.cells[4].misfit == float("inf")
    assert found.cells[4].baselines["gat"].failed == 1
    assert found.chosen is not found.cells[4]


def test_a_missing_run_is_an_error(plan: CalibrationPlan) -> None:
    runs = made_up_runs(plan, "csbm", dict.fromkeys(CELLS, 1.0))
    with pytest.raises(UserError, match=r"1 calibration runs of gat.*reproduce cal"):
        judge("csbm", runs[1:], plan, PAPER)


def test_baselines_alone_are_trained_and_gcn_over_the_normalisation_alone(
    tmp_path: Path,
) -> None:
    plan = load_calibration(write_plan(tmp_path, [0.002]))
    configs = grid_configs(plan, "csbm")
    counts = {name: sum(c.method == name for c in configs) for name in PAPER}
    assert counts == {"gcn": 2, "gat": 4, "gatv2": 4}
    assert len(configs) == 10
    gcn = [config for config in configs if config.method == "gcn"]
    assert {config.weight_decay for config in gcn} == {0.0005}


def test_the_projects_plan_is_small_and_its_seeds_are_its_own() -> None:
    plan = load_calibration()
    assert set(plan.datasets) == {"cora", "citeseer", "pubmed"}
    for name, grid in plan.datasets.items():
        assert len(list(grid.cells())) <= 12
        assert not set(plan.run_seeds) & set(range(load_recipe(name).runs))
        # What the paper does state is not tried.
        assert grid.base == f"paper/{name}"
    for name in search_names():
        assert not set(plan.run_seeds) & set(load_search(name).run_seeds)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"first_seed": 3}, "first_seed is 3, but seeds below 4 are reported"),
        ({"criterion": "the best"}, "criterion"),
        ({"seeds": 1}, "seeds: Input should be greater than or equal to 2"),
        ({"tries": 1}, "tries: no such setting; choose one of criterion"),
    ],
)
def test_a_plan_that_cannot_be_used_is_a_one_line_error(
    tmp_path: Path, changes: dict[str, object], words: str
) -> None:
    with pytest.raises(UserError, match=words) as raised:
        load_calibration(write_plan(tmp_path, **changes))
    assert "\n" not in str(raised.value)


def test_the_page_shows_every_cell_and_says_it_looked_at_test_scores(
    tmp_path: Path,
) -> None:
    plan = load_calibration()
    paper = read_paper()["citeseer"]
    tried = list(plan.datasets["citeseer"].cells())
    distances = {
        tuple(cell.values()): 0.1 * abs(index - 7) for index, cell in enumerate(tried)
    }
    runs = made_up_runs(plan, "citeseer", distances, paper)
    with Store(tmp_path / "store") as store:
        store.put_group(runs)
        export_runs(store, tmp_path / "results" / "calibration.csv")
    found, page = reproduce_calibration(tmp_path / "results", tmp_path / "docs")
    text = page.read_text()
    assert [one.dataset for one in found] == ["citeseer"]
    assert found[0].chosen.settings == tried[7]
    assert "Cells are judged by test accuracy" in " ".join(text.split())
    assert "no variant took part after that" in " ".join(text.split())
    chosen = [line for line in text.splitlines() if line.endswith("| chosen |")]
    assert chosen[0].startswith("| rows sum to one | 0.0005 | 0.5 |")
    assert len(chosen) == 1
    assert sum(line.startswith(("| raw", "| rows")) for line in text.splitlines()) == 12
