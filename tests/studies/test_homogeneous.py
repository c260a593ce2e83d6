"""Numbers of docs/reproduction.md, computed again with scipy from the runs."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from studies.homogeneous import beside, tables
from studies.pages import DOCS
from studies.results import runs_path
from tempergat.comparison.paper import BACKBONE_OF, read_paper

RUNS = pd.read_csv(runs_path("homogeneous/runs.csv"))


def our_scores(dataset: str) -> pd.DataFrame:
    runs = RUNS[RUNS["dataset"] == dataset].set_index(["seed", "method"])
    return 100 * runs["best_val_accuracy_test"].unstack()


@pytest.mark.parametrize("dataset", tables.DATASETS)
def test_a_gain_is_tested_over_paired_seeds_and_corrected(dataset: str) -> None:
    ours = our_scores(dataset)
    p = {m: stats.ttest_rel(ours[m], ours[b]).pvalue for m, b in BACKBONE_OF.items()}
    corrected, largest = {}, 0.0
    for place, method in enumerate(sorted(p, key=lambda m: p[m])):
        largest = corrected[method] = max(largest, min(1.0, (8 - place) * p[method]))
    found = {m: gain.t_p_holm for m, gain in beside.gains(dataset).items()}
    assert found == pytest.approx(corrected)


@pytest.mark.parametrize("dataset", tables.DATASETS)
def test_all_gains_together_are_tested_within_seeds(dataset: str) -> None:
    ours, paper = our_scores(dataset), read_paper()[dataset]
    gains = np.mean([ours[m] - ours[b] for m, b in BACKBONE_OF.items()], axis=0)
    theirs = np.mean([paper[m].mean - paper[b].mean for m, b in BACKBONE_OF.items()])
    # Eight variants have a weight of 1/8 each, and two backbones of 4/8 each.
    squares = [(paper[m].std / 8) ** 2 for m in BACKBONE_OF]
    squares += [(paper[b].std / 2) ** 2 for b in ("gat", "gatv2")]
    error = np.sqrt(gains.var(ddof=1) / 50 + sum(squares) / 50)
    _, test, correlated = beside.joint_tests(dataset, of_gains=True)
    assert test.difference == pytest.approx(gains.mean() - theirs)
    assert test.standard_error == pytest.approx(error)
    assert correlated.p > test.p


def test_everything_that_differs_is_listed() -> None:
    page = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    listed = re.findall(r"^- (\w+), (\w+)(?::| over)", page, re.MULTILINE)
    differing = []
    for name in tables.DATASETS:
        tests, gains = beside.cell_tests(name), beside.gains(name)
        differing += [(name, m) for m, (_, agrees) in tests.items() if not agrees]
        for method, gain in gains.items():
            shown = "worse" if beside.paper_gain(name, method) > 0 else "better"
            differing += [(name, method)] if gain.verdict == shown else []
    assert sorted(listed) == sorted(differing)
