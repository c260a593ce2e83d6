"""The planned tests of docs/when.md, made again with scipy from the runs."""

import pandas as pd
import pytest
from scipy import stats

from studies.when.analysis import CONTRASTS, PLAN, across, graphs, runs, verdicts
from studies.when.tables import NUMBERS

ARMS = [contrast.split("-") for contrast in CONTRASTS]
FAMILIES = {graph["name"]: graph["family"] for graph in PLAN["real"]["graphs"]}


def real_scores(backbone: str) -> pd.DataFrame:
    """Test scores by graph and seed, with a column for each arm."""
    found = runs().query("stage == 'real' and backbone == @backbone")
    return found.set_index(["graph", "seed", "arm"])["test"].unstack()


def holm(p_values: list[float]) -> list[float]:
    """Holm's correction, by its definition."""
    return [
        max(min(1.0, sum(q >= p for q in p_values) * p) for p in p_values if p <= mine)
        for mine in p_values
    ]


@pytest.mark.parametrize("backbone", ["gat", "gatv2"])
def test_tests_across_real_graphs_are_those_of_scipy(backbone: str) -> None:
    means = real_scores(backbone).groupby("graph").mean().groupby(FAMILIES).mean()
    gains = [means[arm] - means[other] for arm, other in ARMS]
    found = across("real", backbone)
    p_values = [stats.wilcoxon(gain, method="exact").pvalue for gain in gains]
    assert list(found["p"]) == pytest.approx(holm(p_values))
    for gain, is_same in zip(gains, found["same"], strict=True):
        above = stats.ttest_1samp(gain, -1.0, alternative="greater").pvalue
        below = stats.ttest_1samp(gain, 1.0, alternative="less").pvalue
        assert is_same == (max(above, below) < 0.05)


def test_tests_within_a_graph_are_those_of_scipy() -> None:
    citeseer = real_scores("gatv2").loc["citeseer"]
    tests = [stats.ttest_rel(citeseer[arm], citeseer[other]) for arm, other in ARMS]
    shown = verdicts().loc[("gatv2", "citeseer")] != "within noise"
    assert list(shown) == [p < 0.05 for p in holm([test.pvalue for test in tests])]
    assert shown["residual-plain"]


def test_tests_over_splits_that_overlap_are_those_of_nadeau_and_bengio() -> None:
    actor = real_scores("gatv2").loc["actor"]
    p_values = []
    for arm, other in ARMS:
        d = actor[arm] - actor[other]
        # 48 % of the nodes train, and 20 % test.
        t = d.mean() / ((1 / 10 + 20 / 48) * d.var()) ** 0.5
        p_values.append(2 * stats.t.sf(abs(t), 9))
    shown = verdicts().loc[("gatv2", "actor")] != "within noise"
    assert list(shown) == [p < 0.05 for p in holm(p_values)]
    assert stats.ttest_rel(actor["post_gate"], actor["plain"]).pvalue < 0.05
    assert not shown["post_gate-plain"]


def test_the_rule_differs_from_a_residual_above_the_threshold_alone() -> None:
    means = real_scores("gatv2").groupby("graph").mean().loc[graphs("above").index]
    gains = (means["plain"] - means["residual"]).groupby(FAMILIES).mean()
    assert NUMBERS["rule_gain"]() == f"{gains.sum() / len({*FAMILIES.values()}):+.2f}"
    assert NUMBERS["rule_p"]() == f"{stats.wilcoxon(gains).pvalue:.3f}"
