"""Wilcoxon's test is exact, with ties and zeros too."""

import numpy as np
import pytest
import scipy.stats

from tempergat.stats import wilcoxon_p


@pytest.mark.parametrize("count", [2, 5, 10])
@pytest.mark.parametrize("digits", [0, 1, 6])
def test_the_p_is_that_of_scipy_with_ties_and_zeros(count: int, digits: int) -> None:
    # Rounding makes ties, and with no digits zeros too.
    values = np.random.default_rng(count).normal(0.4, 1.5, count).round(digits)
    if digits == 0:
        values[0] = 0.0
        values[-1] = 2.0
    expected = float(scipy.stats.wilcoxon(values).pvalue)
    assert wilcoxon_p(values) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("count", [20, 100])
def test_the_p_of_many_values_is_that_of_scipys_exact_method(count: int) -> None:
    values = np.random.default_rng(count).normal(0.4, 1.5, count)
    expected = scipy.stats.wilcoxon(values, method="exact").pvalue
    assert wilcoxon_p(values) == pytest.approx(expected, rel=1e-9)


def test_the_p_counts_all_signs_where_scipy_gives_an_approximation() -> None:
    values = np.random.default_rng(0).normal(0.4, 1.5, 16).round(0)
    ranks = scipy.stats.rankdata(np.abs(values[values != 0.0]))
    signs = np.arange(2 ** len(ranks))[:, None] >> np.arange(len(ranks)) & 1
    sums, observed = signs @ ranks, ranks[values[values != 0.0] > 0.0].sum()
    expected = 2 * min((sums <= observed).mean(), (sums >= observed).mean())
    assert wilcoxon_p(values) == pytest.approx(expected, rel=1e-12)


def test_very_many_values_have_the_p_of_the_normal_distribution() -> None:
    values = np.random.default_rng(1).normal(0.1, 1.5, 500).round(1)
    expected = scipy.stats.wilcoxon(values).pvalue
    assert wilcoxon_p(values) == pytest.approx(expected, rel=1e-9)
