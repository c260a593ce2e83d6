"""NaN and infinities in JSON."""

import math

from tempergat.base import replace_non_finite

VALUES = {"t": [1.0, math.nan], "deep": {"low": (-math.inf, 2)}, "name": "nan"}


def test_non_finite_numbers_become_null() -> None:
    expected = {"t": [1.0, None], "deep": {"low": [None, 2]}, "name": "nan"}
    assert replace_non_finite(VALUES) == expected


def test_the_replacement_can_be_chosen() -> None:
    expected = {"t": [1.0, "nan"], "deep": {"low": ["-inf", 2]}, "name": "nan"}
    assert replace_non_finite(VALUES, str) == expected
