"""Least squares against scipy and against known answers."""

import numpy as np
import pytest
from scipy import stats as scipy_stats

from tempergat.stats import least_squares


def test_one_column_agrees_with_scipy() -> None:
    draw = np.random.default_rng(0)
    x = draw.normal(size=20)
    y = 3.0 - 2.0 * x + draw.normal(size=20)
    expected = scipy_stats.linregress(x, y)
    found = least_squares({"x": x.tolist()}, y.tolist())["x"]
    assert found.value == pytest.approx(expected.slope)
    assert found.p == pytest.approx(expected.pvalue)
    half = scipy_stats.t.ppf(0.975, 18) * expected.stderr
    assert found.high - found.value == pytest.approx(half)


def test_each_column_gets_its_own_effect() -> None:
    draw = np.random.default_rng(1)
    columns = {name: draw.normal(size=40).tolist() for name in "abc"}
    values = 5.0 + 2.0 * np.array(columns["a"]) - 1.0 * np.array(columns["b"])
    values += 0.01 * draw.normal(size=40)
    found = least_squares(columns, values.tolist())
    assert found["a"].value == pytest.approx(2.0, abs=0.01)
    assert found["b"].value == pytest.approx(-1.0, abs=0.01)
    assert found["a"].p < 1e-10 < found["c"].p


def test_columns_that_repeat_each_other_are_refused() -> None:
    column = [1.0, 2.0, 3.0, 4.0, 5.0]
    with pytest.raises(ValueError, match="do not determine"):
        least_squares({"a": column, "b": column}, column)
