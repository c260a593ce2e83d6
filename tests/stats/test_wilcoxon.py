"""Wilcoxon's test gives scipy's p."""

import numpy as np
import pytest
import scipy.stats

from tempergat.stats import wilcoxon_p


@pytest.mark.parametrize("count", [2, 5, 10, 13, 14, 20])
@pytest.mark.parametrize("digits", [0, 1, 6])
def test_the_p_is_that_of_scipy_with_ties_and_zeros(count: int, digits: int) -> None:
    # Rounding makes ties, and with no digits zeros too.
    values = np.random.default_rng(count).normal(0.4, 1.5, count).round(digits)
    if digits == 0:
        values[0] = 0.0
        values[-1] = 2.0
    expected = float(scipy.stats.wilcoxon(values).pvalue)
    assert wilcoxon_p(values) == pytest.approx(expected, abs=1e-12)
