"""The search for the default recipe: its plan, its runs and its page."""

from pathlib import Path

import pytest
import torch
import yaml

from tempergat.base import UserError
from tempergat.data import csbm
from tempergat.study.default_recipe import load_default_plan
from tempergat.study.default_recipe.confirmation import (
    ConfirmationResult,
    GraphResult,
    Pair,
    family_test,
)
from tempergat.study.engine import read_runs
from tempergat.study.reproduce import PAGES, Workspace, run_page
from tempergat.training import load_recipe
from tests.support.small_study import RESULTS
from tests.support.tiny_graph import write_recipe


def test_the_default_is_one_of_the_cells_of_the_committed_plan() -> None:
    plan = load_default_plan(RESULTS)
    configs = list(plan.configs())
    assert len(configs) == 72
    assert plan.present in plan.cells()
    for method in plan.methods:
        assert load_recipe("default").config_for(method) in configs
        present = plan.config(plan.present, method)
        assert load_recipe("plain").config_for(method) == present
    assert plan.first_seed >= load_recipe("default").runs
    assert not set(plan.run_seeds) & set(plan.confirmation.run_seeds)


def write_plan(folder: Path, present: dict[str, float | bool]) -> None:
    plan = {
        "base": str(write_recipe(folder / "recipe.yaml")),
        "methods": ["gcn", "gat"],
        "first_seed": 50,
        "seeds": 1,
        "grid": {"learning_rate": [0.05, 1e30], "residual": [False, True]},
        "present": present,
        "confirmation": {"first_seed": 70, "seeds": 2, "least_families": 1},
        "families": {"made": ["small"]},
    }
    (folder / "default_recipe").mkdir()
    text = yaml.safe_dump(plan, sort_keys=False)
    (folder / "default_recipe" / "plan.yaml").write_text(text)


def workspace(folder: Path) -> Workspace:
    graph = csbm(n=60, a=10.0, b=4.0, d=8, mu=2.0)
    return Workspace(folder, folder / "out", torch.device("cpu"), lambda name: graph)


def test_the_search_chooses_a_cell_and_fresh_seeds_judge_it(tmp_path: Path) -> None:
    # The present default diverges, so every run of it fails or predicts one class.
    write_plan(tmp_path, {"learning_rate": 1e30, "residual": False})
    page, place = PAGES["default"], workspace(tmp_path)
    with pytest.raises(UserError, match="reproduce default --run"):
        page.write(tmp_path, tmp_path / "docs")
    assert not run_page(page, place).not_done
    facts = page.write(tmp_path, tmp_path / "docs").facts
    assert facts["chosen"]["learning_rate"] == 0.05
    assert "average rank" in (tmp_path / "docs" / "default.md").read_text()
    assert len(read_runs(tmp_path / "default_recipe" / "small.csv")) == 8
    confirmation = tmp_path / "default_recipe" / "confirmation" / "small.csv"
    assert len(read_runs(confirmation)) == 2 * 2 * 2


def test_nothing_is_confirmed_where_the_present_default_is_the_best(
    tmp_path: Path,
) -> None:
    write_plan(tmp_path, {"learning_rate": 0.05, "residual": False})
    page, place = PAGES["default"], workspace(tmp_path)
    run_page(page, place)
    chosen = page.write(tmp_path, tmp_path / "docs").facts["chosen"]
    text = (tmp_path / "docs" / "default.md").read_text()
    is_present = chosen == {"learning_rate": 0.05, "residual": False}
    assert is_present == ("was the default already" in text)
    assert is_present != (tmp_path / "default_recipe" / "confirmation").exists()


FEWER_WITH_ONE_CLASS = Pair(2, 0)


def judged(
    gains: list[float], one_class: Pair = FEWER_WITH_ONE_CLASS
) -> ConfirmationResult:
    """The test with one graph in each family."""
    graphs = [
        GraphResult(f"g{n}", f"f{n}", {"gat": Pair(50.0, 50.0 + gain)}, one_class)
        for n, gain in enumerate(gains)
    ]
    return family_test(graphs, least_families=6)


def test_the_chosen_cell_replaces_the_default_only_by_the_rule_of_the_plan() -> None:
    better = [1.0, 2.0, 0.5, 3.0, 1.5, 2.5, 0.7]
    assert judged(better).replaces
    assert judged(better).gain == pytest.approx(1.6)
    # More runs that predict one class, a loss, chance, or too few families.
    assert not judged(better, Pair(0, 1)).replaces
    assert judged(better, Pair(0, 1)).worse == [f"g{n}" for n in range(7)]
    assert not judged([-gain for gain in better]).replaces
    assert not judged([1.0, -2.0, 0.5, -3.0, 1.5, -2.5, 0.7]).replaces
    assert not judged(better[:5]).replaces
