"""Equivalence, power, and how far two standard deviations are apart."""

import math

import scipy


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
        ValueError: The standard error or the margin is not above 0.
    """
    if standard_error <= 0.0 or margin <= 0.0:
        raise ValueError(
            f"the standard error is {standard_error} and the margin {margin}; both "
            "must be above 0"
        )
    above_low = scipy.stats.t.sf((difference + margin) / standard_error, degrees)
    below_high = scipy.stats.t.cdf((difference - margin) / standard_error, degrees)
    return float(max(above_low, below_high))


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
