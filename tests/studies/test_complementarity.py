"""The tests of docs/complementarity.md, once more with csv and scipy."""

import bz2
import csv
import json
from collections import defaultdict
from statistics import mean

import pytest
from scipy import stats

from studies.complementarity.tables import (
    BETTER,
    NOT_PLANNED,
    PREMISE,
    PRIMARY,
    compared,
)
from studies.results import runs_path

WEIGHTS = {
    "interaction": {"none": 1, "gate": -1, "temperature": -1, "both": 1},
    "gate-none": {"gate": 1, "none": -1},
    "temperature-none": {"temperature": 1, "none": -1},
    "both-gate": {"both": 1, "gate": -1},
    "both-temperature": {"both": 1, "temperature": -1},
    "both-none": {"both": 1, "none": -1},
}
PARTS = {
    **{"gat": "none", "gated": "gate", "temp_only": "temperature"},
    **{"gatv2": "none", "gated_v2": "gate", "temp_only_v2": "temperature"},
    **{"temp_gated": "both", "temp_gated_v2": "both"},
}


def by_seed(contrast: str) -> list[float]:
    """The mean over backbones, levels with noise and datasets, in points."""
    values = defaultdict(list)
    with bz2.open(runs_path("complementarity/runs.csv"), "rt", newline="") as file:
        for row in csv.DictReader(file):
            noise = json.loads(row["condition"] or "{}").get("noise", "none")
            weight = WEIGHTS[contrast].get(PARTS[row["method"]], 0)
            if noise == "both" and weight:
                score = 100.0 * float(row["best_val_accuracy_test"])
                values[row["seed"]].append(weight * score)
    # A seed has one score for each part that takes part in the contrast.
    return [mean(each) * len(WEIGHTS[contrast]) for each in values.values()]


@pytest.mark.parametrize("names", [PREMISE, PRIMARY, BETTER, NOT_PLANNED], ids=str)
def test_contrasts_are_tested_as_scipy_does(names: tuple[str, ...]) -> None:
    for test in compared(names):
        values = by_seed(test.method)
        assert len(values) == test.pairs == 20
        assert test.difference == pytest.approx(mean(values))
        expected = stats.ttest_1samp(values, 0.0).pvalue
        assert test.t_p == pytest.approx(expected)
