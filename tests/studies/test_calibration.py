"""The misfit of docs/calibration.md, computed from the runs by scipy alone."""

import math

import numpy as np
import pytest
from scipy.stats import chi2, ttest_ind_from_stats

from studies.calibration.tables import cells
from studies.results import read_csv, read_runs

# The paper's mean and standard deviation of 50 runs.
PAPER = {
    ("cora", "gat"): (80.81, 1.07),
    ("cora", "gatv2"): (80.53, 1.00),
    ("citeseer", "gat"): (68.61, 0.97),
    ("citeseer", "gatv2"): (68.35, 0.91),
    ("pubmed", "gat"): (78.25, 0.32),
    ("pubmed", "gatv2"): (78.36, 0.44),
}
RATES = {"cora": 0.6, "citeseer": 0.5, "pubmed": 0.5}


def test_the_p_of_the_nearest_cell_is_that_of_scipy() -> None:
    misfit = 0.0
    for (dataset, method), (mean, std) in PAPER.items():
        runs = read_runs(f"calibration/{dataset}.csv")
        runs = runs[(runs["method"] == method) & (runs["weight_decay"] == 0.001)]
        runs = runs[(runs["attention_dropout"] == RATES[dataset])]
        runs = runs[~runs["normalize_features"].astype(bool)]
        scores = 100 * runs["best_val_loss_test"].to_numpy()
        assert sorted(runs["seed"]) == list(range(5000, 5050))
        ours = scores.mean(), scores.std(ddof=1)
        misfit += ttest_ind_from_stats(*ours, 50, mean, std, 50, False).statistic ** 2
        misfit += np.log(ours[1] / std) ** 2 / (1 / 98 + 1 / 98)
    nearest = cells().iloc[0]
    assert nearest.name[1] == "best validation loss"
    assert nearest["misfit"] == pytest.approx(misfit)
    assert nearest["p"] == pytest.approx(chi2.sf(misfit, 12))
    assert nearest["distance"] == pytest.approx(math.sqrt(misfit / 12))


def test_every_seed_of_the_plan_was_run_in_every_cell() -> None:
    """A cell with fewer runs would be compared with the paper all the same."""
    for dataset in RATES:
        runs = read_csv(f"calibration/{dataset}.csv.bz2")
        assert (runs["status"] == "done").all()
        assert (runs.groupby("config_hash")["seed"].nunique() == 50).all()
        assert set(runs["seed"]) == set(range(5000, 5050))
