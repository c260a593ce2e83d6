"""The second plan for the default recipe: its runs on several splits and its rule."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from tempergat.study.default_recipe import (
    load_default_plan,
    load_second_plan,
    search_result,
)
from tempergat.study.default_recipe.second import (
    GraphCells,
    SecondResult,
    candidate_ranks,
    graph_cells,
    second_result,
)
from tempergat.study.default_recipe.second_plan import SecondPlan, second_graphs
from tempergat.study.engine import read_runs
from tempergat.study.reproduce import PAGES, Workspace, default_runs, run_page
from tempergat.training import MixedRun, Run, RunConfig, Scores, load_recipe
from tests.support.small_study import RESULTS, tiny_cora
from tests.support.tiny_graph import write_graph_of_splits, write_recipe


def committed_plan() -> SecondPlan:
    plan = load_second_plan(RESULTS)
    assert plan is not None
    return plan


def test_the_committed_plan_has_cells_of_the_search_and_fresh_seeds() -> None:
    first, second = load_default_plan(RESULTS), committed_plan()
    assert second.present == first.present
    assert all(cell in first.cells() for cell in second.cells)
    earlier = {*first.run_seeds, *first.confirmation.run_seeds}
    assert not earlier & set(second.run_seeds)
    graphs = second_graphs(RESULTS)
    assert len(graphs) * len(second.configs()) * second.seeds == 2160
    assert set(first.graphs) < set(graphs)
    assert set(second.with_own_recipe) < set(graphs)


def test_the_recipe_is_the_one_that_both_plans_choose_on_the_graphs_it_is_for() -> None:
    plan = committed_plan()
    found = second_result(plan, RESULTS)
    search = search_result(load_default_plan(RESULTS), RESULTS, plan.with_own_recipe)
    assert found is not None
    assert search is not None
    best = plan.candidates[int(np.argmin(found.ranks_where_used))]
    assert search.chosen == best
    cell = plan.cells.index(best)
    for method in plan.methods:
        assert load_recipe("default").config_for(method) == plan.config(cell, method)


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A finished first plan on one graph, and a second plan on its three splits."""
    write_graph_of_splits(tmp_path / "small.npz", 3)
    monkeypatch.setenv("TEMPERGAT_MIRROR", str(tmp_path))
    shared = {
        "base": str(write_recipe(tmp_path / "recipe.yaml")),
        "methods": ["gcn", "gat"],
        "seeds": 1,
        "present": {"residual": False, "learning_rate": 0.01},
    }
    first = shared | {
        "first_seed": 50,
        "grid": {"residual": [False], "learning_rate": [0.01]},
        "confirmation": {"first_seed": 70, "seeds": 2, "least_families": 1},
        "families": {"made": ["small"]},
    }
    second = shared | {
        "first_seed": 90,
        "seeds": 3,
        "candidates": [
            {"residual": True, "learning_rate": 0.01},
            {"residual": True, "learning_rate": 0.02},
        ],
        "with_own_recipe": [],
        "largest_loss": 2.0,
        "far_below": 20.0,
        "least_families": 1,
    }
    when = yaml.safe_load((RESULTS / "when" / "plan.yaml").read_text())
    graph = when["real"]["graphs"][0]
    graph |= {"name": "small", "file": "small.npz", "family": "made", "splits": "own"}
    when["real"]["graphs"] = [graph]
    for name, plan in {
        "default_recipe/plan.yaml": first,
        "default_recipe/second_plan.yaml": second,
        "when/plan.yaml": when,
    }.items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(yaml.safe_dump(plan, sort_keys=False))
    return Workspace(tmp_path, tmp_path / "out", torch.device("cpu"), tiny_cora)


def test_every_run_has_its_split_also_after_a_stop(
    study: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    train_mixed = default_runs.train_mixed

    def stop_at_the_third(runs: Sequence[MixedRun], device: torch.device) -> list[Run]:
        if len(runs) > 1:
            sizes.append(len(runs))
        if len(sizes) == 3:
            raise KeyboardInterrupt
        return train_mixed(runs, device)

    monkeypatch.setattr(default_runs, "train_mixed", stop_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        run_page(PAGES["default"], study)
    file = study.results / "default_recipe" / "second" / "small.csv"
    assert len(read_runs(file)) == 3 + 6
    run_page(PAGES["default"], study)
    # Cells that differ in the learning rate alone are trained at once, on all splits.
    assert sizes == [3, 6, 3, 3, 6]
    runs = read_runs(file)
    assert len(runs) == 2 * 3 * 3
    assert {(run.seed, run.split) for run in runs} == {(90, 0), (91, 1), (92, 2)}
    assert len({run.fingerprint for run in runs}) == 3
    facts = PAGES["default"].write(study.results, study.results / "docs").facts
    assert facts["second"]["missing"] == []
    page = (study.results / "docs" / "default.md").read_text()
    assert page.index("## The second plan") < page.index("## The search")


def graph(family: str, gain: float, best: int = 2, wrong: int = 0) -> GraphCells:
    """A graph where the candidate `best` has the best validation score."""
    val = np.array([[90.0, 50.0, 50.0, 50.0]] * 3)
    val[:, best] += 5.0
    test = np.array([[50.0, 40.0, 40.0, 40.0]] * 3)
    test[:, best] = 50.0 + gain
    counts = np.zeros((3, 4), int)
    counts[0, 0], counts[0, best] = 2, wrong
    return GraphCells(family, family, val, test, counts)


def judged(graphs: Sequence[GraphCells]) -> SecondResult:
    return SecondResult(committed_plan(), graphs, (), candidate_ranks(graphs, 2))


def test_a_candidate_becomes_the_default_only_by_the_rule_of_the_plan() -> None:
    mixed = [3.0, -1.9] * 6
    found = judged([graph(f"f{n}", gain) for n, gain in enumerate(mixed)])
    assert found.replaces
    assert found.chosen_settings["norm"] == "batch"
    assert found.ranks == pytest.approx((2.0, 1.0))
    some = [graph(f"f{n}", gain) for n, gain in enumerate(mixed[1:])]
    # Too few families, a large loss, more loss than gain, as many wrong runs as before.
    assert not judged(some).replaces
    lost = judged([*some, graph("worse", -2.1)])
    assert not lost.replaces
    assert lost.too_large_losses == {"worse": pytest.approx(-2.1)}
    assert not judged([graph(f"f{n}", -0.1) for n in range(12)]).replaces
    assert not judged([graph(f"f{n}", 1.0, wrong=2) for n in range(12)]).replaces
    assert judged([graph(f"f{n}", 1.0, wrong=1) for n in range(12)]).replaces


def test_graphs_with_recipes_of_their_own_count_in_the_choice_alone() -> None:
    graphs = [graph(f"f{n}", 1.0) for n in range(12)]
    found = judged([*graphs, graph("cora", -9.0, wrong=30)])
    assert found.replaces
    assert found.test(found.chosen, found.cells).gain < 1.0
    others = [graph(name, 1.0, best=1) for name in ("cora", "citeseer", "pubmed")]
    assert judged([graphs[0], *others]).chosen == 1


def test_a_cell_that_is_only_measured_cannot_be_chosen() -> None:
    found = judged([graph(f"f{n}", 1.0, best=3) for n in range(12)])
    assert found.chosen_settings == committed_plan().candidates[0]
    assert not found.replaces


def run_of(config: RunConfig, seed: int, val: float, confusion: list[list[int]]) -> Run:
    values = config.model_dump(mode="json")
    scores = {config.selection: Scores(5, 1.0, val, 0.7)}
    return Run("g", "", config.method, seed, values, scores, confusion=confusion)


def test_a_run_goes_wrong_that_fails_predicts_one_class_or_ends_far_below() -> None:
    plan = committed_plan()
    several, one = [[9, 1], [2, 8]], [[10, 0], [10, 0]]
    runs = []
    for config in plan.configs():
        failed, one_class, far_below, *others = plan.run_seeds
        whole = run_of(config, failed, 0.8, several)
        runs.append(replace(whole, scores={}, status="failed", reason="not finite"))
        runs.append(run_of(config, one_class, 0.8, one))
        runs.append(run_of(config, far_below, 0.55, several))
        runs += [run_of(config, seed, 0.8, several) for seed in others]
    found = graph_cells(plan, "g", "f", runs)
    assert found is not None
    assert (found.wrong == 3).all()
    assert (found.val == -np.inf).all()
    assert found.test == pytest.approx(np.full((3, 4), 70.0))
    assert graph_cells(plan, "g", "f", runs[1:]) is None
