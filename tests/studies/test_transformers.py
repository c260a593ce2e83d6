"""The planned tests of docs/transformers.md, once more with scipy."""

import pytest
from scipy import stats

from studies.results import read_whole_runs
from studies.transformers.tables import OTHERS, PLAIN, compared


@pytest.mark.parametrize("method", OTHERS)
def test_a_gain_is_tested_as_scipy_does(method: str) -> None:
    sums: dict[str, dict[int, float]] = {method: {}, PLAIN: {}}
    for run in read_whole_runs("transformers/runs.csv"):
        if run.method in sums:
            of = sums[run.method]
            score = run.scores["best_val_accuracy"].test
            of[run.seed] = of.get(run.seed, 0.0) + score
    seeds = range(400, 410)
    pair = ([sums[name][seed] for seed in seeds] for name in (method, PLAIN))
    assert compared()[method].t_p == pytest.approx(stats.ttest_rel(*pair).pvalue)
