"""The choice of docs/default.md, and its test computed from the runs by scipy."""

from collections import defaultdict

import pytest
from scipy.stats import wilcoxon

from studies.default.tables import CELLS, FAMILIES, METHODS, family_gains, ranks, runs
from studies.results import read_runs
from tempergat.stats import wilcoxon_p
from tempergat.training import load_recipe


@pytest.mark.parametrize("cell", ["no_norm", "batch", "layer"])
def test_the_p_over_families_is_that_of_scipy(cell: str) -> None:
    gains = defaultdict(list)
    for graph in FAMILIES.keys() - {"cora", "citeseer", "pubmed"}:
        found = read_runs(f"default/{graph}.csv")
        earlier = ~found["residual"].astype(bool)
        new = ~earlier & (found["norm"].fillna("no_norm") == cell)
        gain = found[new]["test"].mean() - found[earlier]["test"].mean()
        gains[FAMILIES[graph]].append(gain)
    means = [sum(of_family) / len(of_family) for of_family in gains.values()]
    assert family_gains(cell, "used").mean() == pytest.approx(sum(means) / 13)
    exact = wilcoxon(means, method="exact").pvalue
    assert wilcoxon_p(family_gains(cell, "used")) == pytest.approx(exact)


def test_the_recipe_is_the_best_candidate_on_the_graphs_it_is_for() -> None:
    best = CELLS[ranks("used").idxmin()]
    for recipe, cell in (("default", best), ("plain", CELLS["earlier"])):
        for method in METHODS:
            config = load_recipe(recipe).config_for(method)
            assert config.feature_dropout == cell["dropout"]
            for name in ("residual", "norm", "learning_rate"):
                assert getattr(config, name) == cell[name]


def test_every_cell_has_its_settings_and_ten_runs_of_every_graph_and_method() -> None:
    for name, found in runs().groupby("cell"):
        assert set(found["learning_rate"]) == {CELLS[name]["learning_rate"]}
        assert set(found["feature_dropout"]) == {CELLS[name]["dropout"]}
        seeds = found.groupby(["dataset", "method"])["seed"].agg(set)
        assert len(seeds) == len(FAMILIES) * len(METHODS)
        assert all(of == set(range(8000, 8010)) for of in seeds)
