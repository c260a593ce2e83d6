"""Page's test against scipy."""

import numpy as np
import pytest
from scipy import stats as scipy_stats

from studies.noise.trends import page_p, rises


def rising_values() -> np.ndarray:
    return np.arange(5.0) + 0.4 * np.random.default_rng(0).standard_normal((6, 5))


def test_page_s_test_is_two_sided() -> None:
    rising = rising_values()
    one_sided = scipy_stats.page_trend_test(rising, method="asymptotic").pvalue
    assert page_p(rising) == pytest.approx(2 * one_sided)
    assert page_p(-rising) == pytest.approx(page_p(rising))
    assert page_p(np.ones((6, 5))) == 1.0


def test_values_that_differ_in_the_last_bits_show_no_trend() -> None:
    assert page_p(np.ones((6, 5)) + 1e-15 * np.arange(5.0)) == 1.0


def test_the_sign_of_the_trend_is_that_of_the_ranks() -> None:
    assert rises(rising_values())
    assert not rises(-rising_values())
