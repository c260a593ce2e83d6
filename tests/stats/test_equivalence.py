"""Equivalence, power and distances of deviations, beside known values."""

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from tempergat.stats import deviation_distance, equivalence_p, paired_power, welch


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


def test_welch_gives_the_interval_of_scipy() -> None:
    random = np.random.default_rng(3)
    ours, theirs = random.normal(1.0, 2.0, 30), random.normal(0.5, 1.0, 12)
    expected = scipy_stats.ttest_ind(ours, theirs, equal_var=False)
    test = welch(
        (float(ours.mean()), float(ours.std(ddof=1)), 30),
        (float(theirs.mean()), float(theirs.std(ddof=1)), 12),
    )
    interval = expected.confidence_interval(0.9)
    assert test.interval(0.9) == pytest.approx((interval.low, interval.high))
