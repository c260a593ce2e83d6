"""Statistics against scipy and against examples worked by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from tempergat.stats import (
    PairedComparison,
    compare_pairs,
    compare_to_baseline,
    holm,
    summarise,
)
from tests.support.all_signs import wilcoxon_by_all_signs

Scores = dict[int, float | None]


def by_seed(scores: list[float]) -> Scores:
    return dict(enumerate(scores))


def compared(gat: Scores, gated: Scores) -> PairedComparison:
    (comparison,) = compare_to_baseline({"gat": gat, "gated": gated}, "gat")
    return comparison


def test_a_summary_worked_by_hand() -> None:
    # Mean 3, squared deviations 4 + 1 + 0 + 1 + 4 over 4; t(4) at 97.5 % is 2.7764.
    summary = summarise([1.0, 2.0, 3.0, 4.0, 5.0], failed=2)
    assert summary.mean == 3.0
    assert summary.std == pytest.approx(math.sqrt(2.5))
    half = 2.7764451 * math.sqrt(2.5) / math.sqrt(5)
    assert summary.low == pytest.approx(3.0 - half)
    assert summary.high == pytest.approx(3.0 + half)
    assert (summary.runs, summary.failed) == (5, 2)


def test_one_run_has_a_mean_but_no_spread_and_none_has_neither() -> None:
    one = summarise([80.0])
    assert (one.mean, one.std, one.low, one.runs) == (80.0, None, None, 1)
    none = summarise([], failed=3)
    assert (none.mean, none.std, none.runs, none.failed) == (None, None, 0, 3)


def test_a_score_of_nan_is_refused() -> None:
    with pytest.raises(ValueError, match="record that run as failed"):
        summarise([80.0, math.nan])


def test_holm_worked_by_hand() -> None:
    # Sorted 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1 = 0.02, 0.03, 0.06, 0.04; the
    # last may not fall below the one before it.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.01, 0.04, 0.03, 0.5]) == pytest.approx([0.04, 0.09, 0.09, 0.5])
    assert holm([0.6, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_a_comparison_that_cannot_be_made_does_not_count_in_holm() -> None:
    assert holm([0.01, None, 0.02]) == pytest.approx([0.02, None, 0.02])


@pytest.mark.parametrize("wrong", [math.nan, -0.1, 1.1])
def test_holm_refuses_what_is_not_a_p_value(wrong: float) -> None:
    with pytest.raises(ValueError, match=rf"number 1 is {wrong}, not between 0 and 1"):
        holm([0.01, wrong, 0.02])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_never_lowers_a_p_and_keeps_their_order(p_values: list[float]) -> None:
    corrected = [p for p in holm(p_values) if p is not None]
    assert len(corrected) == len(p_values)
    assert all(c >= p or c == 1.0 for c, p in zip(corrected, p_values, strict=True))
    order = np.argsort(p_values, kind="stable")
    assert (np.diff(np.asarray(corrected)[order]) >= 0).all()
    assert max(corrected) <= 1.0


def test_a_paired_comparison_worked_by_hand() -> None:
    # Differences 1, 2, 3: mean 2, standard deviation 1, t = 2 sqrt(3) with 2 degrees
    # of freedom, whose two-sided p is 1 - t / sqrt(t^2 + 2) = 0.0742.
    found = compared(by_seed([10.0, 20.0, 30.0]), by_seed([11.0, 22.0, 33.0]))
    assert found.difference == pytest.approx(2.0)
    assert found.effect_size == pytest.approx(2.0)
    t = 2 * math.sqrt(3)
    assert found.t_p == pytest.approx(1 - t / math.sqrt(t**2 + 2))
    # All three signs agree: 2 of the 8 sign patterns are as extreme.
    assert found.wilcoxon_p == pytest.approx(0.25)
    assert found.correlation == pytest.approx(1.0)
    assert found.verdict == "within noise"


def test_comparisons_agree_with_scipy() -> None:
    random = np.random.default_rng(3)
    base = random.normal(80, 1, 50)
    better = base + random.normal(0.6, 0.8, 50)
    same = base + random.normal(0.0, 0.8, 50)
    scores = {
        name: by_seed(values.tolist())
        for name, values in (("gat", base), ("gated", better), ("temp_only", same))
    }
    gated, temp_only = compare_to_baseline(scores, "gat")
    for found, values in ((gated, better), (temp_only, same)):
        assert found.t_p == pytest.approx(scipy_stats.ttest_rel(values, base).pvalue)
        assert found.wilcoxon_p == pytest.approx(
            scipy_stats.wilcoxon(values, base).pvalue, rel=1e-6
        )
        assert found.correlation == pytest.approx(
            scipy_stats.pearsonr(values, base).statistic
        )
        interval = scipy_stats.ttest_rel(values, base).confidence_interval()
        assert (found.low, found.high) == pytest.approx(tuple(interval))
    assert gated.t_p is not None
    assert gated.t_p_holm == pytest.approx(2 * gated.t_p)
    assert temp_only.t_p_holm == temp_only.t_p
    assert gated.verdict == "better"
    assert temp_only.verdict == "within noise"


def test_a_method_that_loses_is_called_worse() -> None:
    base, loss = np.random.default_rng(0).normal([[80], [1]], 1, (2, 20))
    found = compared(by_seed(base.tolist()), by_seed((base - loss).tolist()))
    assert found.verdict == "worse"


def test_the_correction_can_take_a_verdict_away() -> None:
    random = np.random.default_rng(1)
    base = random.normal(80, 1, 10)
    scores = {"gat": by_seed(base.tolist())}
    gain = random.normal(0, 1, 10)
    gain += -gain.mean() + 0.8 * gain.std(ddof=1)
    scores["gated"] = by_seed((base + gain).tolist())
    alone = compare_to_baseline(scores, "gat")[0]
    assert alone.verdict == "better"
    for extra in range(8):
        scores[f"m{extra}"] = by_seed((base + random.normal(0, 1, 10)).tolist())
    among_others = compare_to_baseline(scores, "gat")[0]
    assert among_others.t_p == alone.t_p
    assert among_others.verdict == "within noise"


def test_a_failed_run_drops_its_pair_and_is_counted() -> None:
    base = by_seed([80.0, 81.0, 82.0, 83.0])
    other = by_seed([81.0, 83.0, 82.5, 99.0]) | {3: None}
    found = compared(base, other)
    assert (found.pairs, found.lost_pairs) == (3, 1)
    assert found.difference == pytest.approx((1.0 + 2.0 + 0.5) / 3)


def test_runs_without_a_partner_are_not_paired() -> None:
    found = compared({0: 1.0, 1: 2.0, 2: 3.0}, {1: 3.0, 2: 5.0, 7: 9.0})
    assert (found.pairs, found.lost_pairs, found.difference) == (2, 2, 1.5)


def test_too_few_pairs_are_called_that() -> None:
    found = compared({0: 1.0}, {0: 5.0})
    assert (found.t_p, found.verdict, found.difference) == (None, "too few runs", 4.0)
    found = compared({0: 1.0}, {1: 5.0})
    assert (found.pairs, found.difference) == (0, None)


def test_equal_scores_are_within_noise() -> None:
    same = by_seed([80.0, 81.0, 82.0])
    found = compared(same, dict(same))
    assert (found.t_p, found.wilcoxon_p, found.effect_size) == (1.0, 1.0, 0.0)
    assert found.verdict == "within noise"


def test_the_same_gain_in_every_pair_is_no_spread_without_a_step() -> None:
    gat = by_seed([70.0 + seed for seed in range(5)])
    gated = by_seed([80.0 + seed for seed in range(5)])
    found = compared(gat, gated)
    assert (found.t_p, found.low, found.verdict) == (None, None, "no spread")
    assert found.wilcoxon_p == pytest.approx(0.0625)


@pytest.mark.parametrize(("ratio", "verdict"), [(0.0, "better"), (2.0, "within noise")])
def test_the_same_gain_in_every_pair_is_tested_by_what_one_node_changes(
    ratio: float, verdict: str
) -> None:
    gat, gated = by_seed([70.0] * 5), by_seed([80.0] * 5)
    # One of 25 test nodes is 4 points.
    (found,) = compare_pairs({"gat": gat, "gated": gated}, {"gated": "gat"}, ratio, 4.0)
    t = 10.0 / (4.0 * math.sqrt(1 / 5 + ratio))
    assert found.t_p == pytest.approx(2 * scipy_stats.t.sf(t, 4))
    assert (found.effect_size, found.verdict) == (None, verdict)


def test_equal_differences_are_ties_whatever_their_last_bits() -> None:
    # 80.3 - 80.2 and 70.2 - 70.1 differ in the last bits; in thousandths they tie.
    base = [80.2, 70.1, 60.3, 50.5, 40.7, 30.9, 75.2, 65.2]
    steps = [0.1, 0.1, -0.1, 0.1, 0.2, -0.2, 0.2, 0.3]
    gained = [round(b + s, 1) for b, s in zip(base, steps, strict=True)]
    found = compared(by_seed(base), by_seed(gained))
    assert found.wilcoxon_p == pytest.approx(wilcoxon_by_all_signs(steps))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(760, 840), st.one_of(st.none(), st.integers(760, 840))),
        max_size=60,
    )
)
def test_any_scores_can_be_compared_without_a_warning(
    pairs: list[tuple[int, int | None]],
) -> None:
    base: dict[int, float | None] = {i: a / 10 for i, (a, _) in enumerate(pairs)}
    other = {i: None if b is None else b / 10 for i, (_, b) in enumerate(pairs)}
    found = compared(base, other)
    assert found.pairs + found.lost_pairs == len(pairs)
    for value in (found.t_p, found.wilcoxon_p, found.t_p_holm, found.wilcoxon_p_holm):
        assert value is None or 0.0 <= value <= 1.0
    assert (found.verdict == "too few runs") == (found.pairs < 2)
    assert found.effect_size is None or math.isfinite(found.effect_size)


def test_each_variant_can_have_its_own_baseline_in_one_family() -> None:
    random = np.random.default_rng(5)
    scores = {
        name: by_seed(random.normal(80, 1, 12).tolist())
        for name in ("gat", "gatv2", "gated", "gated_v2")
    }
    found = compare_pairs(scores, {"gated": "gat", "gated_v2": "gatv2"})
    assert [(c.method, c.baseline) for c in found] == [
        ("gated", "gat"),
        ("gated_v2", "gatv2"),
    ]
    expected = holm([c.t_p for c in found])
    assert [c.t_p_holm for c in found] == expected
