"""Which methods are best: tests of all pairs, and what they cost in errors."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from tempergat.stats import (
    best_set,
    claim_beats,
    compare_all,
    compare_pairs,
    holm,
    pairs_for_fewer,
    shared_pairs,
    size_with,
    summarise,
)

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


def test_the_best_set_is_by_one_sided_tests_corrected_within_each_method() -> None:
    columns = np.random.default_rng(5).normal([82.0, 81.5, 81.0, 78.0], 1.0, (8, 4))
    found = best_set(scores_of(columns))
    assert found is not None
    for method, p in found.p.items():
        own = columns[:, int(method[1])]
        others = np.delete(columns, int(method[1]), axis=1)
        tests = [
            scipy_stats.ttest_rel(other, own, alternative="greater").pvalue
            for other in others.T
        ]
        assert p == pytest.approx(min(1.0, 3 * min(tests)))
    assert found.members == tuple(m for m, p in found.p.items() if p >= 0.05)
    assert found.left_out == {"m2": "m0", "m3": "m0"}
    assert (found.untested, found.pairs) == ((), 8)


def test_a_method_that_loses_nine_of_ten_seeds_is_left_out_of_twelve() -> None:
    draw = np.random.default_rng(3)
    columns = draw.normal(80.0, 0.3, (10, 12)) + draw.normal(0.0, 1.0, (10, 1))
    columns[:, 0] += 1.5
    columns[:, 1] = columns[:, 0] - 1.0 - draw.normal(0.0, 0.3, 10)
    found = best_set(scores_of(columns))
    assert found is not None
    assert "m1" not in found.members


def test_splits_that_overlap_leave_fewer_out() -> None:
    columns = np.random.default_rng(6).normal([82.0, 80.0, 80.0], 1.0, (10, 3))
    plain, corrected = (best_set(scores_of(columns), ratio) for ratio in (0.0, 1.0))
    assert plain is not None
    assert corrected is not None
    assert (len(plain.members), len(corrected.members)) == (1, 3)
    t = scipy_stats.ttest_rel(columns[:, 0], columns[:, 1]).statistic
    t /= math.sqrt(10 * (1 / 10 + 1.0))
    assert corrected.p["m1"] == pytest.approx(2 * scipy_stats.t.sf(t, 9))


def test_means_and_tests_are_over_the_pairs_that_all_finished() -> None:
    hard: dict[int, float | None] = {0: 50.0, 1: 51.0, 2: 80.0, 3: 81.0, 4: 82.0}
    scores: Scores = {
        "lucky": {0: None, 1: None, 2: 79.0, 3: 80.2, 4: 81.1},
        "gat": hard,
        "once": {0: None, 1: None, 2: None, 3: None, 4: 99.0},
        "never": dict.fromkeys(range(5)),
    }
    used = shared_pairs(scores)
    assert list(used) == ["gat", "lucky"]
    assert used["gat"] == {0: None, 1: None, 2: 80.0, 3: 81.0, 4: 82.0}
    found = best_set(scores)
    assert found is not None
    assert (found.untested, found.pairs) == (("once",), 3)
    assert best_set({"gat": hard, "once": scores["once"]}) is None


def test_a_method_that_fails_often_does_not_take_the_pairs_of_the_others() -> None:
    columns = np.random.default_rng(2).normal([80.0, 79.0, 78.0], 1.0, (10, 3))
    scores = scores_of(columns)
    scores["m2"] = {k: s if k < 4 else None for k, s in scores["m2"].items()}
    found = best_set(scores)
    assert found is not None
    assert (found.untested, found.pairs) == (("m2",), 10)
    # With half of the pairs it takes part.
    scores["m2"] = {k: 78.0 if k < 5 else None for k in range(10)}
    found = best_set(scores)
    assert found is not None
    assert (found.untested, found.pairs) == ((), 5)


def test_the_same_gain_on_every_seed_leaves_the_other_out_by_a_nodes_step() -> None:
    scores: Scores = {"gcn": dict.fromkeys(range(5), 80.0), "mlp": {}}
    scores["mlp"] = dict.fromkeys(range(5), 70.0)
    known, unknown = best_set(scores, step=4.0), best_set(scores)
    assert known is not None
    assert unknown is not None
    assert known.members == ("gcn",)
    assert set(unknown.members) == {"gcn", "mlp"}
    claim = claim_beats(scores, "mlp")
    assert (claim.word, claim.reason) == ("not shown", "no spread")
    assert claim_beats(scores, "mlp", step=4.0).word == "shown"
    # Equal scores on few nodes deny nothing.
    same = {"gcn": scores["mlp"], "mlp": scores["mlp"]}
    assert claim_beats(same, "mlp", step=4.0).word == "not shown"
    assert claim_beats(same, "mlp", step=0.1).word == "at most a point"


def test_a_claim_that_is_not_shown_says_how_many_pairs_would_decide() -> None:
    draw = np.random.default_rng(1)
    noise = draw.normal(0.0, 2.0, (5, 2))
    claim = claim_beats(scores_of(80.0 + noise + np.array([0.0, 1.5])), "m0")
    assert claim.word == "not shown"
    assert claim.pairs_needed is not None
    assert claim.pairs_needed > 5
    # Splits that overlap may never decide.
    never = claim_beats(scores_of(80.0 + noise + np.array([0.0, 1.5])), "m0", 2.0)
    assert never.pairs_needed is None


def test_more_pairs_are_said_to_leave_fewer_methods() -> None:
    columns = np.random.default_rng(1).normal(np.linspace(82, 80, 12), 1.0, (10, 12))
    scores = scores_of(columns)
    found = best_set(scores)
    assert found is not None
    sizes = [size_with(scores, pairs) or 0.0 for pairs in (10, 20, 40, 100)]
    assert sizes == sorted(sizes, reverse=True)
    fewer = pairs_for_fewer(scores)
    assert fewer is not None
    pairs, size = fewer
    assert pairs > 10
    assert size == size_with(scores, pairs) <= len(found.members) / 2


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


def test_a_method_is_beaten_where_it_is_left_out_and_nowhere_else() -> None:
    draw = np.random.default_rng(7)
    words = set()
    for _ in range(60):
        scores = scores_of(draw.normal([80.0, 81.0, 80.0, 80.0], 1.0, (6, 4)))
        found, claim = best_set(scores), claim_beats(scores, "m0")
        assert found is not None
        assert (claim.word == "shown") == ("m0" in found.left_out)
        words.add(claim.word)
    assert {"shown", "not shown"} <= words


def test_claims_that_are_made_together_deny_at_a_smaller_level() -> None:
    columns = np.random.default_rng(8).normal(80.0, 0.5, (6, 2))
    difference = columns[:, 1] - columns[:, 0]
    # The difference is 0: its upper end is below 2.2 standard errors, here a point.
    columns[:, 1] -= difference.mean()
    columns /= 2.2 * difference.std(ddof=1) / math.sqrt(6)
    alone, third = (
        claim_beats(scores_of(columns), "m0", claims=claims).word for claims in (1, 3)
    )
    assert (alone, third) == ("at most a point", "not shown")
