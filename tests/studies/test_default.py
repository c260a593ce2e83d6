"""The choice of docs/default.md is that of `compare`."""

import pytest

from studies.default.attention import by_graph
from studies.default.rule import METHODS, runs, scores_of
from studies.default.study import REAL
from studies.results import read_whole_runs
from tempergat.comparison.chosen import choose


@pytest.mark.parametrize("graph", ["cora", "squirrel_filtered", "facebook"])
def test_the_page_has_the_scores_of_what_compare_chooses(graph: str) -> None:
    kinds = {(False, None): "plain", (True, "batch"): "default"}
    every = [
        *read_whole_runs(f"default/{graph}.csv"),
        *read_whole_runs("default/mlp.csv"),
    ]
    of_both = [
        run
        for run in every
        if run.dataset == graph
        and (run.config["residual"], run.config["norm"]) in kinds
    ]
    scores: dict[str, list[float]] = {}
    for run in choose(of_both).compared:
        score = 100.0 * run.scores["best_val_accuracy"].test
        scores.setdefault(run.method, []).append(score)
    shown = scores_of().loc[graph]["chosen"]
    means = {method: sum(of) / len(of) for method, of in scores.items()}
    without_edges = means.pop("mlp")
    assert means == pytest.approx(shown.to_dict())
    for method, mean in means.items():
        contrast = by_graph().loc[graph, f"{method}-mlp"]
        assert contrast == pytest.approx(mean - without_edges)


def test_both_recipes_have_ten_runs_of_every_graph_and_method() -> None:
    for _, found in runs().groupby("recipe"):
        assert set(found["status"]) == {"done"}
        seeds = found.groupby(["dataset", "method"])["seed"].agg(set)
        assert len(seeds) == len(REAL) * len(METHODS)
        assert all(of == set(range(8000, 8010)) for of in seeds)


def test_on_graphs_that_had_no_part_the_rule_is_as_good_as_the_plan_asks() -> None:
    found = scores_of("generated")
    assert len(found) == 16 * len(METHODS)
    assert found["behind"].mean() <= 0.5
    means = found[["plain", "default", "chosen"]].mean()
    assert means["chosen"] >= means.max()
