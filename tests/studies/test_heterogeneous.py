"""Numbers of docs/heterogeneous.md, computed again with scipy from the runs."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from studies.heterogeneous import tables
from studies.results import runs_path
from tempergat.comparison.paper import BACKBONE_OF
from tempergat.stats import Summary

RUNS = pd.read_csv(runs_path("heterogeneous/runs.csv"))
ALONE = ("temp_only", "temp_only_v2")


def scores(graph: str) -> pd.DataFrame:
    runs = RUNS[RUNS["dataset"] == graph].set_index(["seed", "method"])
    return 100 * runs["best_val_accuracy_test"].unstack()


@pytest.mark.parametrize("graph", tables.ON_PAGE)
def test_the_gain_of_a_group_has_an_interval_over_seeds(graph: str) -> None:
    ours = scores(graph)
    gains = {m: ours[m] - ours[b] for m, b in BACKBONE_OF.items()}
    of_group = {
        "temperature alone": [gains[m] for m in ALONE],
        "gated variants": [gain for m, gain in gains.items() if m not in ALONE],
    }
    for group, found in of_group.items():
        by_seed = np.mean(found, axis=0)
        low, high = stats.t.interval(0.95, 9, by_seed.mean(), stats.sem(by_seed))
        shown = tables.group_gain(graph, group)
        assert (shown.mean, shown.low, shown.high) == pytest.approx(
            (by_seed.mean(), low, high)
        )


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        ([(0.1, 0.5), (0.1, 0.2)], "reappear"),
        ([(0.1, 0.5), (-0.1, 0.2)], "reappear in part"),
        ([(0.1, 0.5), (-0.3, -0.1)], "do not reappear"),
        ([(-0.2, 0.5), (-0.1, 0.2)], "do not reappear"),
    ],
)
def test_the_answer_follows_the_rule_of_the_plan(
    ends: list[tuple[float, float]], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_graph = dict(zip(tables.ON_PAGE, ends, strict=True))

    def made_up(graph: str, group: str) -> Summary:
        low, high = by_graph[graph]
        return Summary((low + high) / 2, 0.1, low, high, 10, 0, 10)

    monkeypatch.setattr(tables, "group_gain", made_up)
    assert tables.answer("gated_variants") == words
