"""Tests of one sample or two, power, and Holm's correction of many tests."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import scipy
from numpy.typing import ArrayLike

CONFIDENCE = 0.95
ALPHA = 1.0 - CONFIDENCE
PValue = TypeVar("PValue", float, float | None)
# The time of the exact p grows with the cube of the number of values.
_MOST_EXACT = 200


def wilcoxon_p(values: ArrayLike) -> float:
    """The two-sided p that values are symmetric about 0.

    Zeros are left out, and ties have the mean of their ranks. The p is exact for up to
    200 values; for more, it is that of the normal distribution.

    Args:
        values: Not all of them 0.
    """
    numbers = np.asarray(values, dtype=np.float64)
    nonzero = numbers[numbers != 0.0]
    if len(nonzero) > _MOST_EXACT:
        return float(scipy.stats.wilcoxon(nonzero, method="approx").pvalue)
    # Mean ranks are multiples of a half.
    ranks = (2 * scipy.stats.rankdata(np.abs(nonzero))).astype(int)
    # The probability of every sum of positive ranks: each sign is even.
    chances = np.zeros(ranks.sum() + 1)
    chances[0] = 1.0
    for rank in ranks:
        chances[rank:] += chances[:-rank].copy()
        chances /= 2.0
    observed = ranks[nonzero > 0.0].sum()
    tail = min(chances[: observed + 1].sum(), chances[observed:].sum())
    return min(1.0, 2.0 * float(tail))


def holm(p_values: Sequence[PValue]) -> list[PValue]:
    """Corrects p-values for multiple testing, by Holm's step-down method.

    Args:
        p_values: None for a test that could not be made: it stays None and does not
            count as a test.

    Returns:
        The corrected p-values in the order given.

    Raises:
        ValueError: A p-value is NaN, or not between 0 and 1.
    """
    tested = [(p, index) for index, p in enumerate(p_values) if p is not None]
    for p, index in tested:
        if not 0.0 <= p <= 1.0:
            raise ValueError(
                f"p-value number {index} is {p}, not between 0 and 1; give None for a "
                "test that could not be made"
            )
    corrected = list(p_values)
    largest = 0.0
    for position, (p, index) in enumerate(sorted(tested)):
        largest = max(largest, min(1.0, (len(tested) - position) * p))
        corrected[index] = largest
    return corrected


@dataclass(frozen=True)
class Welch:
    """Welch's test: two means compared without pairs.

    Attributes:
        difference: First mean minus second.
        standard_error: Standard error of the difference.
        in_standard_errors: The difference divided by its standard error, Welch's t;
            None where both standard deviations are 0.
        p: Two-sided p; None where `in_standard_errors` is None.
        degrees: Welch's degrees of freedom; None where `in_standard_errors` is None.
    """

    difference: float
    standard_error: float
    in_standard_errors: float | None
    p: float | None
    degrees: float | None

    def interval(self, level: float = CONFIDENCE) -> tuple[float, float]:
        """The ends of the difference's t-interval."""
        half = 0.0
        if self.degrees is not None:
            quantile = float(scipy.stats.t.ppf(0.5 + level / 2, self.degrees))
            half = quantile * self.standard_error
        return self.difference - half, self.difference + half


def welch(first: tuple[float, float, int], second: tuple[float, float, int]) -> Welch:
    """Welch's test between two (mean, standard deviation, number of runs).

    Raises:
        ValueError: A side has fewer than two runs.
    """
    (mean_1, std_1, runs_1), (mean_2, std_2, runs_2) = first, second
    difference = mean_1 - mean_2
    if min(runs_1, runs_2) < 2:
        raise ValueError("Welch's test needs two runs or more on both sides")
    error_1, error_2 = std_1 / math.sqrt(runs_1), std_2 / math.sqrt(runs_2)
    standard_error = math.hypot(error_1, error_2)
    if standard_error == 0.0:
        return Welch(difference, 0.0, None, None, None)
    shares = (error_1 / standard_error) ** 4, (error_2 / standard_error) ** 4
    degrees = 1.0 / (shares[0] / (runs_1 - 1) + shares[1] / (runs_2 - 1))
    t = difference / standard_error
    p = 2.0 * float(scipy.special.stdtr(degrees, -abs(t)))
    return Welch(difference, standard_error, t, p, degrees)


def equivalence_p(
    difference: float, standard_error: float, degrees: float, margin: float
) -> float:
    """The p of two one-sided t-tests (TOST) that a difference is within a margin.

    A small p shows that the true difference lies between -margin and +margin.

    Args:
        difference: The estimated difference.
        standard_error: Its standard error, above 0.
        degrees: Degrees of freedom of the standard error.
        margin: The largest difference that counts as none, above 0.

    Raises:
        ValueError: The standard error or the margin is not above 0, or the difference
            is NaN.
    """
    if not (standard_error > 0.0 and margin > 0.0) or math.isnan(difference):
        raise ValueError(
            f"the standard error is {standard_error} and the margin {margin}, which "
            f"must be above 0, and the difference {difference}"
        )
    above_low = scipy.stats.t.sf((difference + margin) / standard_error, degrees)
    below_high = scipy.stats.t.cdf((difference - margin) / standard_error, degrees)
    return float(max(above_low, below_high))


def wilson(right: float, nodes: int, level: float = CONFIDENCE) -> tuple[float, float]:
    """Wilson's interval of a share of nodes, which has a width for 0 and 1 too.

    Args:
        right: The share that was observed, 0 to 1.
        nodes: How many nodes it is of.
        level: How often the interval holds the true share.

    Raises:
        ValueError: The share is not between 0 and 1, or there is no node.
    """
    if not 0.0 <= right <= 1.0 or nodes < 1:
        raise ValueError(
            f"a share of {right} of {nodes} nodes; give 0 to 1 of 1 or more"
        )
    z = float(scipy.special.ndtri(0.5 + level / 2))
    centre = (right + z * z / (2 * nodes)) / (1 + z * z / nodes)
    half = math.sqrt(right * (1 - right) / nodes + (z / (2 * nodes)) ** 2)
    half *= z / (1 + z * z / nodes)
    return max(0.0, centre - half), min(1.0, centre + half)


def paired_power(effect: float, std: float, pairs: int, alpha: float) -> float:
    """The power of the two-sided paired t-test, in the direction of the effect.

    Args:
        effect: The true mean of the differences.
        std: The standard deviation of the differences, above 0.
        pairs: Number of pairs, two or more.
        alpha: The level of the test.

    Raises:
        ValueError: There are fewer pairs, or the standard deviation is not above 0.
    """
    if pairs < 2 or std <= 0.0:
        raise ValueError(
            f"power needs two pairs or more and a standard deviation above 0, not "
            f"{pairs} and {std}"
        )
    degrees = pairs - 1
    critical = scipy.stats.t.ppf(1.0 - alpha / 2.0, degrees)
    shift = abs(effect) / std * math.sqrt(pairs)
    return float(scipy.stats.nct.sf(critical, degrees, shift))


def deviation_distance(
    first_std: float, first_runs: int, second_std: float, second_runs: int
) -> float:
    """log(first_std / second_std) in standard errors, for normal scores.

    The logarithm of a standard deviation of n normal values has a standard error of
    about sqrt(1 / (2 (n - 1))).

    Raises:
        ValueError: A side has fewer than two runs, or no deviation.
    """
    if min(first_runs, second_runs) < 2 or min(first_std, second_std) <= 0.0:
        raise ValueError("both sides need two runs or more and a deviation above 0")
    error = math.sqrt(1 / (2 * (first_runs - 1)) + 1 / (2 * (second_runs - 1)))
    return math.log(first_std / second_std) / error
