"""Numbers of docs/reproduction.md, computed again with scipy from the runs."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from studies.homogeneous import beside, combining, multiverse, tables
from studies.homogeneous.beside import ALONE, DATASETS, GATED, RULES
from studies.results import result_path, runs_path
from tempergat.comparison.paper import BACKBONE_OF, read_paper

GAINING = ["cora", "citeseer"]


@cache
def raw_scores(dataset: str, rule: str, decay: float | None = None) -> pd.DataFrame:
    """Scores with the recipes, or with raw features, all dropout and a decay."""
    if decay is None:
        runs = pd.read_csv(runs_path("homogeneous/runs.csv"))
    else:
        runs = pd.read_csv(runs_path(f"calibration/{dataset}.csv"))
        settings = pd.read_csv(result_path("calibration/settings.csv"))
        fitting = settings[
            (settings["weight_decay"] == decay)
            & (settings["attention_dropout"] > 0)
            & ~settings["normalize_features"].astype(bool)
            & settings["decay_temperature"]
            & settings["decay_gate"]
            & settings["gate_last_layer"].fillna(True).astype(bool)
        ]
        runs = runs[runs["config_hash"].isin(fitting["config_hash"])]
    runs = runs[runs["dataset"] == dataset].set_index(["seed", "method"])
    return 100 * runs[f"{rule}_test"].unstack()


def corrected_p(scores: pd.DataFrame) -> dict[str, float]:
    p = {
        m: stats.ttest_rel(scores[m], scores[b]).pvalue for m, b in BACKBONE_OF.items()
    }
    corrected, largest = {}, 0.0
    for place, method in enumerate(sorted(p, key=lambda m: p[m])):
        largest = corrected[method] = max(largest, min(1.0, (8 - place) * p[method]))
    return corrected


@pytest.mark.parametrize("dataset", DATASETS)
def test_a_gain_is_tested_over_paired_seeds_and_corrected(dataset: str) -> None:
    found = beside.gains(beside.scores(dataset))
    expected = corrected_p(raw_scores(dataset, "best_val_accuracy"))
    assert {m: gain.t_p_holm for m, gain in found.items()} == pytest.approx(expected)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("settings", "decay"), [("recipes", None), ("nearest", 0.001), ("second", 0.002)]
)
def test_gains_that_hold_are_counted_in_every_cell(
    settings: str, decay: float | None, rule: str
) -> None:
    held, gains, centred = dict.fromkeys((True, False), 0), [], []
    for dataset in DATASETS:
        scores, paper = raw_scores(dataset, rule, decay), read_paper()[dataset]
        p = corrected_p(scores)
        for method, backbone in BACKBONE_OF.items():
            ours = (scores[method] - scores[backbone]).mean()
            theirs = paper[method].mean - paper[backbone].mean
            held[method in GATED] += theirs > 0 and ours > 0 and p[method] < 0.05
            gains += [(ours, theirs)] if method in GATED else []
        centred += [*np.array(gains[-6:]) - np.mean(gains[-6:], axis=0)]
    cell = next(
        cell
        for cell in multiverse.cells()
        if cell[1:] == (tables.named(settings), rule)
    )
    assert multiverse.held(cell, GATED, DATASETS)[0] == held[True]
    assert multiverse.held(cell, ALONE, DATASETS)[0] == held[False] == 0
    assert multiverse.correlation(cell) == pytest.approx(
        stats.pearsonr(*zip(*gains, strict=True)).statistic
    )
    assert multiverse.correlation(cell, within=True) == pytest.approx(
        stats.pearsonr(*zip(*centred, strict=True)).statistic
    )


@pytest.mark.parametrize("dataset", DATASETS)
def test_all_scores_together_are_tested_within_seeds(dataset: str) -> None:
    ours, paper = raw_scores(dataset, "best_val_accuracy"), read_paper()[dataset]
    means = ours[list(BACKBONE_OF)].mean(axis=1)
    theirs = np.mean([paper[m].mean for m in BACKBONE_OF])
    # The paper's means err in one direction, so their errors add up.
    std = np.mean([paper[m].std for m in BACKBONE_OF])
    expected = stats.ttest_ind_from_stats(
        means.mean(), means.std(), 50, theirs, std, 50, equal_var=False
    )
    below, test = beside.joint_test(dataset)
    assert (test.difference, test.p) == pytest.approx(
        (means.mean() - theirs, expected.pvalue)
    )
    assert below == sum(ours[m].mean() < paper[m].mean for m in BACKBONE_OF)


def test_what_the_page_says_in_words_is_what_the_rows_give() -> None:
    cells = multiverse.cells()
    assert all(multiverse.held(cell, ALONE, DATASETS)[0] == 0 for cell in cells)
    assert all(multiverse.held(cell, GATED, ("pubmed",))[1] == 0 for cell in cells)
    averages = {
        (name, cell.rule): beside.average_gain(
            multiverse.scores(cell.settings, name, cell.rule), GATED
        )
        for name in DATASETS
        for cell in cells
    }
    assert all(of.low < 0 for (name, _), of in averages.items() if name == "pubmed")
    assert all(averages[name, "best_val_loss"].low > 0 for name in GAINING)
    assert averages["cora", "last_epoch"].high < 0
    above = {
        (cell.settings, name)
        for cell in cells
        for name in DATASETS
        for method in combining.COMBINED
        if combining.gain(multiverse.scores(cell.settings, name, cell.rule), method).low
        > 0
    }
    assert {name for _, name in above} == {"citeseer"}
    assert multiverse.RECIPES not in {settings for settings, _ in above}
    worse = {
        name
        for name in DATASETS
        for method in combining.COMBINED
        if combining.gain(beside.scores(name), method).high < 0
    }
    assert worse == {"pubmed"}
    assert not any(float(tables.against_gcn("better", name)) for name in DATASETS)


@pytest.mark.parametrize("ahead", [0.0, 0.3, 2.0])
def test_the_interval_of_a_combination_holds_its_true_difference(ahead: float) -> None:
    """Whether the parts are equal, or one is ahead by little or by much."""
    random, misses = np.random.default_rng(0), [0, 0]
    methods = ["gat", "gated", "temp_only", "temp_gated"]
    for _ in range(1000):
        drawn = random.normal(size=(12, 4)) + random.normal(size=(12, 1))
        scores = pd.DataFrame(drawn, columns=methods)
        scores["temp_only"] += ahead
        found = combining.gain(scores, "temp_gated")
        assert found.low <= found.difference <= found.high
        misses[0] += found.low > -ahead
        misses[1] += found.high < -ahead
    # Each end may miss in 2.5 % of studies; three standard errors more by chance.
    assert max(misses) <= 1000 * 0.025 + 3 * np.sqrt(1000 * 0.025)
    # Where it is clear which part is better, neither end is needlessly far away.
    assert ahead < 2.0 or min(misses) >= 5


def test_a_gate_before_attention_alone_is_a_part_where_it_was_run() -> None:
    paper = ["gat", "gated", "temp_only", "gated_temp", "gated_temp_v2", "gatv2"]
    found = pd.DataFrame(columns=paper)
    assert combining.parts("gated_temp", found) == ("gated", "temp_only")
    found["gated_first"] = 0.0
    assert combining.parts("gated_temp", found) == ("gated_first", "temp_only")
