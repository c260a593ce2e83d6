"""Wilcoxon's and Welch's tests, equivalence and power beside scipy and known values."""

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from tempergat.stats import (
    deviation_distance,
    equivalence_p,
    paired_power,
    welch,
    wilcoxon_p,
    wilson,
)
from tests.support.all_signs import wilcoxon_by_all_signs


@pytest.mark.parametrize("count", [2, 5, 10, 16])
@pytest.mark.parametrize("digits", [0, 1, 6])
def test_the_p_counts_all_signs_with_ties_and_zeros(count: int, digits: int) -> None:
    # Rounding makes ties, and with no digits zeros too.
    values = np.random.default_rng(count).normal(0.4, 1.5, count).round(digits)
    if digits == 0:
        values[0] = 0.0
        values[-1] = 2.0
    expected = wilcoxon_by_all_signs(values)
    assert wilcoxon_p(values) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("count", [20, 100])
def test_the_p_of_many_values_is_that_of_scipys_exact_method(count: int) -> None:
    values = np.random.default_rng(count).normal(0.4, 1.5, count)
    expected = scipy_stats.wilcoxon(values, method="exact").pvalue
    assert wilcoxon_p(values) == pytest.approx(expected, rel=1e-9)


def test_very_many_values_have_the_p_of_the_normal_distribution() -> None:
    values = np.random.default_rng(1).normal(0.1, 1.5, 500).round(1)
    expected = scipy_stats.wilcoxon(values).pvalue
    assert wilcoxon_p(values) == pytest.approx(expected, rel=1e-9)


def test_equivalence_is_the_larger_of_two_one_sided_tests() -> None:
    values = np.random.default_rng(0).normal(0.1, 1.0, 40)
    error = values.std(ddof=1) / math.sqrt(40)
    low = scipy_stats.ttest_1samp(values, -0.5, alternative="greater").pvalue
    high = scipy_stats.ttest_1samp(values, 0.5, alternative="less").pvalue
    found = equivalence_p(float(values.mean()), error, 39, 0.5)
    assert found == pytest.approx(max(low, high))


def test_equivalence_at_5_percent_is_a_90_percent_interval_within_the_margin() -> None:
    test = welch((81.0, 1.0, 50), (81.2, 0.9, 50))
    low, high = test.interval(0.90)
    assert low < -0.2 < high
    assert test.degrees is not None
    p = equivalence_p(test.difference, test.standard_error, test.degrees, -low)
    assert p == pytest.approx(0.05)


def test_a_margin_of_0_is_refused() -> None:
    with pytest.raises(ValueError, match="margin 0"):
        equivalence_p(0.1, 0.2, 49, 0.0)


def test_power_is_that_of_published_tables() -> None:
    # Cohen's d 0.5 at 5 %, two-sided: 34 pairs are the fewest for a power of 0.8.
    assert paired_power(0.5, 1.0, 34, 0.05) == pytest.approx(0.8078, abs=2e-4)
    assert paired_power(0.5, 1.0, 33, 0.05) < 0.8
    assert paired_power(-0.5, 1.0, 34, 0.05) == paired_power(0.5, 1.0, 34, 0.05)
    assert paired_power(0.0, 1.0, 34, 0.05) == pytest.approx(0.025)


def test_power_agrees_with_simulated_tests() -> None:
    random = np.random.default_rng(1)
    values = random.normal(0.4, 1.0, (4000, 20))
    t = values.mean(1) / values.std(1, ddof=1) * math.sqrt(20)
    share = float((t > scipy_stats.t.ppf(0.975, 19)).mean())
    assert paired_power(0.4, 1.0, 20, 0.05) == pytest.approx(share, abs=0.02)


def test_the_distance_of_equal_deviations_is_standard_normal() -> None:
    random = np.random.default_rng(2)
    first = random.normal(0.0, 3.0, (3000, 50)).std(1, ddof=1)
    second = random.normal(9.0, 3.0, (3000, 50)).std(1, ddof=1)
    pairs = zip(first, second, strict=True)
    distances = [deviation_distance(a, 50, b, 50) for a, b in pairs]
    assert np.mean(distances) == pytest.approx(0.0, abs=0.06)
    assert np.std(distances) == pytest.approx(1.0, abs=0.05)


def test_welch_worked_by_hand() -> None:
    # Standard errors 1/sqrt(25) and 2/sqrt(100) are both 0.2.
    found = welch((81.0, 1.0, 25), (80.0, 2.0, 100))
    assert found.difference == pytest.approx(1.0)
    assert found.standard_error == pytest.approx(math.sqrt(0.08))
    assert found.in_standard_errors == pytest.approx(1 / math.sqrt(0.08))


def test_welch_agrees_with_scipy_on_the_runs_themselves() -> None:
    random = np.random.default_rng(2)
    one, two = random.normal(80, 1, 50), random.normal(80.5, 2, 20)
    found = welch((one.mean(), one.std(ddof=1), 50), (two.mean(), two.std(ddof=1), 20))
    expected = scipy_stats.ttest_ind(one, two, equal_var=False)
    assert found.p == pytest.approx(expected.pvalue)
    assert found.in_standard_errors == pytest.approx(expected.statistic)
    interval = expected.confidence_interval(0.9)
    assert found.interval(0.9) == pytest.approx((interval.low, interval.high))


def test_welch_without_any_spread_gives_no_p() -> None:
    found = welch((81.0, 0.0, 5), (80.0, 0.0, 5))
    assert (found.difference, found.in_standard_errors, found.p) == (1.0, None, None)


@pytest.mark.parametrize("right", [0, 3, 10])
def test_wilsons_interval_is_scipys_and_has_a_width_for_perfect_scores(
    right: int,
) -> None:
    expected = scipy_stats.binomtest(right, 10).proportion_ci(method="wilson")
    assert wilson(right / 10, 10) == pytest.approx(tuple(expected))


def test_welchs_test_of_tiny_deviations_is_that_of_others() -> None:
    found = welch((1e-90, 1e-90, 5), (0.0, 2e-90, 8))
    expected = scipy_stats.ttest_ind_from_stats(1, 1, 5, 0, 2, 8, equal_var=False)
    assert found.p == pytest.approx(expected.pvalue)


def test_the_equivalence_of_nan_is_refused() -> None:
    with pytest.raises(ValueError, match="difference nan"):
        equivalence_p(math.nan, 0.2, 49, 0.5)
