"""The search for the default recipe: its plan, its runs and its page."""

from pathlib import Path

import pytest
import torch
import yaml

from tempergat.base import UserError
from tempergat.data import csbm
from tempergat.study.default_recipe import load_default_plan
from tempergat.study.engine import read_runs
from tempergat.study.reproduce import PAGES, Workspace, run_page
from tempergat.training import load_recipe
from tests.support.small_study import RESULTS
from tests.support.tiny_graph import write_recipe


def test_the_present_default_is_one_of_the_cells_of_the_committed_plan() -> None:
    plan = load_default_plan(RESULTS)
    configs = list(plan.configs())
    assert len(configs) == 72
    for method in plan.methods:
        assert load_recipe("default").config_for(method) in configs
    assert plan.first_seed >= load_recipe("default").runs


def test_a_run_fills_one_row_each_and_the_page_names_the_best_cell(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "default_recipe"
    folder.mkdir()
    plan = {
        "base": str(write_recipe(tmp_path / "recipe.yaml")),
        "methods": ["gcn", "gat"],
        "first_seed": 50,
        "seeds": 1,
        "grid": {"learning_rate": [0.05, 1e30], "residual": [False, True]},
        "families": {"made": ["small"]},
    }
    (folder / "plan.yaml").write_text(yaml.safe_dump(plan, sort_keys=False))
    graph = csbm(n=60, a=10.0, b=4.0, d=8, mu=2.0)
    device = torch.device("cpu")
    page = PAGES["default"]
    place = Workspace(tmp_path, tmp_path / "out", device, lambda name: graph)
    with pytest.raises(UserError, match="reproduce default --run"):
        page.write(tmp_path, tmp_path / "docs")
    assert not run_page(page, place).not_done
    facts = page.write(tmp_path, tmp_path / "docs").facts
    assert facts["chosen"]["learning_rate"] == 0.05
    assert "average rank" in (tmp_path / "docs" / "default.md").read_text()
    assert len(read_runs(folder / "small.csv")) == 8
