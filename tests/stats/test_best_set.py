"""Which methods are best: tests of all pairs, and what they cost in errors."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from tempergat.stats import claim_beats, compare_all, compare_pairs, holm, summarise

Scores = dict[str, dict[int, float | None]]


def scores_of(columns: np.ndarray) -> Scores:
    """Scores by method, highest mean first, from [pairs, methods]."""
    order = np.argsort(-columns.mean(axis=0))
    return {f"m{m}": dict(enumerate(columns[:, m].tolist())) for m in order}


def worse_than_the_highest(scores: Scores) -> list[str]:
    best = next(iter(scores))
    return [
        c.method
        for c in compare_all(scores)
        if c.baseline == best and c.verdict == "worse"
    ]


def share_of_studies_with_an_error(methods: int, pairs: int, studies: int) -> float:
    """How often a method is called worse among methods that are equal.

    A seed is as good or bad for all methods, so their runs are correlated.
    """
    draw = np.random.default_rng(methods * 100 + pairs)
    errors = 0
    for _ in range(studies):
        of_seed = draw.normal(80.0, 1.0, (pairs, 1))
        scores = scores_of(of_seed + draw.normal(0.0, 1.0, (pairs, methods)))
        errors += bool(worse_than_the_highest(scores))
    return errors / studies


def test_equal_methods_are_seldom_worse_than_best() -> None:
    assert share_of_studies_with_an_error(5, pairs=10, studies=150) <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize(("methods", "pairs"), [(2, 5), (2, 10), (5, 10), (12, 5)])
def test_something_is_called_worse_in_one_of_twenty_studies_at_most(
    methods: int, pairs: int
) -> None:
    studies = 1_000
    # Two standard errors of a share of 5 %: with two methods it is exactly that.
    error = 2 * math.sqrt(0.05 * 0.95 / studies)
    assert share_of_studies_with_an_error(methods, pairs, studies) <= 0.05 + error


def test_all_pairs_are_one_family_of_paired_t_tests() -> None:
    columns = np.random.default_rng(2).normal([82.0, 80.5, 80.0], 1.0, (10, 3))
    found = compare_all(scores_of(columns))
    expected = [
        scipy_stats.ttest_rel(columns[:, second], columns[:, first]).pvalue
        for first, second in itertools.combinations(range(3), 2)
    ]
    assert [c.t_p for c in found] == pytest.approx(expected)
    assert [c.t_p_holm for c in found] == pytest.approx(holm(expected))
    assert [c.plain_p_holm for c in found] == [c.t_p_holm for c in found]


def test_splits_that_share_training_nodes_are_corrected_for_worked_by_hand() -> None:
    # Differences 1, 2, 3: mean 2, variance 1. With one test node for three training
    # nodes the squared standard error is 1/3 + 1/3, and t has 2 degrees of freedom.
    scores = {"gat": {0: 10.0, 1: 20.0, 2: 30.0}, "gated": {0: 11.0, 1: 22.0, 2: 33.0}}
    (found,) = compare_pairs(scores, {"gated": "gat"}, test_to_train=1 / 3)
    t = 2.0 / math.sqrt(2 / 3)
    assert found.t_p == pytest.approx(1 - t / math.sqrt(t**2 + 2))
    half = scipy_stats.t.ppf(0.975, 2) * math.sqrt(2 / 3)
    assert (found.low, found.high) == pytest.approx((2 - half, 2 + half))
    (plain,) = compare_pairs(scores, {"gated": "gat"})
    assert found.plain_p_holm == plain.t_p_holm == plain.t_p
    of_one_method = summarise([1.0, 2.0, 3.0], test_to_train=1 / 3)
    assert of_one_method.high == pytest.approx(2 + half)


def test_overlapping_splits_without_a_difference_are_seldom_called_different() -> None:
    """Scores on splits that share nodes are correlated; the plain test ignores it."""
    draw = np.random.default_rng(0)
    called = {"t_p_holm": 0, "plain_p_holm": 0}
    for _ in range(300):
        # The correlation that the correction is made for: r / (1 + r) with r = 1/3.
        shared = draw.normal(0.0, 0.5)
        differences = shared + draw.normal(0.0, math.sqrt(0.75), 10)
        scores: Scores = {
            "gat": dict.fromkeys(range(10), 80.0),
            "gated": dict(enumerate((80.0 + differences).tolist())),
        }
        (found,) = compare_pairs(scores, {"gated": "gat"}, test_to_train=1 / 3)
        for name in called:
            called[name] += getattr(found, name) < 0.05
    assert called["t_p_holm"] <= 0.08 * 300
    assert called["plain_p_holm"] >= 0.2 * 300


def test_one_sided_tests_say_whether_any_method_beats_a_baseline() -> None:
    draw = np.random.default_rng(4)
    noise = draw.normal(0.0, 1.0, (10, 4))

    def word(columns: np.ndarray) -> str:
        return claim_beats(scores_of(columns), "m0").word

    assert word(80.0 + noise) == "not shown"
    assert word(80.0 + noise + np.array([0.0, 0.0, 3.0, 0.0])) == "shown"
    # That the baseline is better than others is no such evidence.
    assert word(80.0 + noise + np.array([9.0, 0, 0, 0])) == "at most a point"
    few = claim_beats({"gat": {0: 80.0}, "gcn": {0: 70.0}}, "gcn")
    assert (few.word, few.reason) == ("not shown", "too few pairs")
