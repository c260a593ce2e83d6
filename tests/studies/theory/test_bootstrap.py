"""Bootstrap over blocks."""

import numpy as np
import pytest

from studies.theory.bootstrap import Estimate, resampled_means


def test_bootstrap_error_is_the_standard_error_of_the_mean():
    values = np.random.default_rng(0).standard_normal((400, 50))
    estimate = resampled_means(values.sum(axis=1), 50, seed=1)
    assert estimate.value == pytest.approx(values.mean())
    assert estimate.standard_error == pytest.approx(1 / np.sqrt(20_000), rel=0.12)


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    random = np.random.default_rng(1)
    covered = 0
    for seed in range(100):
        sums = random.exponential(size=(50, 20)).sum(axis=1)
        low, high = resampled_means(sums, 20, seed).interval(0.95)
        covered += bool(low <= 1.0 <= high)
    assert 86 <= covered <= 99


def test_an_interval_leaves_out_as_much_as_it_says():
    estimate = Estimate(np.array(500.0), np.arange(1.0, 1001.0))
    assert estimate.interval(0.95) == pytest.approx((25, 975), abs=1)
    assert estimate.interval(0.9) == pytest.approx((50, 950), abs=1)


def test_differences_on_common_blocks_are_sharper_than_their_parts():
    shared = np.random.default_rng(2).standard_normal(300)
    means = resampled_means(np.stack([shared + 0.1, shared], axis=1), 1, seed=3)
    difference = means[0] - means[1]
    assert difference.value == pytest.approx(0.1)
    assert difference.standard_error < 1e-12 < means.standard_error[0]


def test_p_values_are_small_only_for_a_wrong_truth():
    sums = np.random.default_rng(4).standard_normal((1000, 10)).sum(axis=1)
    estimate = resampled_means(sums, 10, seed=5)
    assert estimate.p_values(0.0) > 1e-3
    assert estimate.p_values(0.1) < 1e-6


def test_an_exact_estimate_agrees_with_itself_and_with_nothing_else():
    exact = Estimate(np.array(2.0), np.full(10, 2.0))
    assert exact.p_values(2.0) == 1.0
    assert exact.p_values(2.1) == 0.0


def test_infinite_replicates_keep_their_intervals():
    estimate = Estimate(np.array(np.inf), np.array([1.0] * 500 + [np.inf] * 500))
    low, high = estimate.interval()
    assert (low, high) == (1.0, np.inf)
