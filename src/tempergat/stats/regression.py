"""Least squares: how a value changes with what was varied."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from tempergat.stats.paired import CONFIDENCE


@dataclass(frozen=True)
class Coefficient:
    """A coefficient of a linear regression.

    Attributes:
        value: Its estimate.
        low: Lower end of its 95 % t-interval.
        high: Upper end of it.
        p: Two-sided p of the t-test that it is 0.
    """

    value: float
    low: float
    high: float
    p: float


def least_squares(
    columns: Mapping[str, Sequence[float]], values: Sequence[float]
) -> dict[str, Coefficient]:
    """Regresses values on columns and an intercept, by ordinary least squares.

    Args:
        columns: What the values may depend on, by name.
        values: The values.

    Returns:
        The coefficient of each column; the intercept is left out.

    Raises:
        ValueError: There are too few values, or a column is a sum of multiples of the
            others.
    """
    matrix = np.column_stack(
        [np.ones(len(values)), *(np.asarray(c, dtype=float) for c in columns.values())]
    )
    degrees = len(values) - matrix.shape[1]
    if degrees < 1 or np.linalg.matrix_rank(matrix) < matrix.shape[1]:
        raise ValueError(
            f"{len(values)} values do not determine {matrix.shape[1]} coefficients"
        )
    target = np.asarray(values, dtype=float)
    found, *_ = np.linalg.lstsq(matrix, target, rcond=None)
    residual = target - matrix @ found
    variance = float(residual @ residual) / degrees
    errors = np.sqrt(variance * np.diag(np.linalg.inv(matrix.T @ matrix)))
    quantile = float(scipy.stats.t.ppf(0.5 + CONFIDENCE / 2, degrees))
    return {
        name: _coefficient(float(value), float(error), quantile, degrees)
        for name, value, error in zip(columns, found[1:], errors[1:], strict=True)
    }


def _coefficient(
    value: float, error: float, quantile: float, degrees: int
) -> Coefficient:
    half = quantile * error
    t = math.inf if error == 0.0 else abs(value) / error
    p = 1.0 if value == 0.0 else 2.0 * float(scipy.stats.t.sf(t, degrees))
    return Coefficient(value, value - half, value + half, p)
