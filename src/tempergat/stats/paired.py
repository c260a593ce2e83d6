"""Summaries of scores, and paired comparisons of two methods.

Results have the unit of the scores. Two methods are compared over pairs: runs with the
same seed, or means over the same split. The verdict is that of the paired t-test after
Holm's correction. Wilcoxon's test is reported next to it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import numpy as np
import scipy
from numpy.typing import NDArray

from tempergat.stats.wilcoxon import wilcoxon_p

CONFIDENCE = 0.95
ALPHA = 1.0 - CONFIDENCE

Verdict = Literal["better", "worse", "within noise", "too few runs"]

PValue = TypeVar("PValue", float, float | None)


@dataclass(frozen=True)
class Summary:
    """Mean, standard deviation and interval of one method's scores.

    Attributes:
        mean: Mean score; None when no run finished.
        std: Standard deviation with ddof 1; None for fewer than two runs.
        low: Lower end of the 95 % t-interval of the mean; None without `std`.
        high: Upper end of it.
        runs: Number of finished runs; the numbers above describe these.
        failed: Number of runs that ended without a score.
    """

    mean: float | None
    std: float | None
    low: float | None
    high: float | None
    runs: int
    failed: int


@dataclass(frozen=True)
class PairedComparison:
    """A method against a baseline over pairs.

    Attributes:
        difference: Mean of method minus baseline over the pairs.
        low: Lower end of the difference's 95 % t-interval.
        high: Upper end of it.
        t_p: Two-sided p of the paired t-test; Wilcoxon's p where every pair has the
            same difference.
        t_p_holm: `t_p` after Holm's correction over all comparisons made together.
        wilcoxon_p: Two-sided p of Wilcoxon's signed-rank test.
        wilcoxon_p_holm: `wilcoxon_p` after Holm's correction.
        effect_size: Cohen's d of the pairs: mean over standard deviation of the
            differences; None where all differences are equal.
        correlation: Pearson correlation of the two methods' scores over the pairs.
        pairs: Number of pairs with both scores.
        lost_pairs: Number of pairs where a run failed or is missing.
    """

    method: str
    baseline: str
    difference: float | None
    low: float | None
    high: float | None
    t_p: float | None
    t_p_holm: float | None
    wilcoxon_p: float | None
    wilcoxon_p_holm: float | None
    effect_size: float | None
    correlation: float | None
    pairs: int
    lost_pairs: int
    verdict: Verdict


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


def summarise(scores: Sequence[float], failed: int = 0) -> Summary:
    """Mean, standard deviation and 95 % interval of finished runs.

    Args:
        scores: One score per finished run, all finite.
        failed: Number of further runs that ended without a score.

    Raises:
        ValueError: A score is NaN or infinite.
    """
    values = np.asarray(scores, dtype=float)
    if not np.isfinite(values).all():
        raise ValueError("a score is not finite: record that run as failed instead")
    count = len(values)
    if count == 0:
        return Summary(None, None, None, None, 0, failed)
    mean = float(values.mean())
    if count == 1:
        return Summary(mean, None, None, None, 1, failed)
    std = float(values.std(ddof=1))
    half = _half_interval(std, count)
    return Summary(mean, std, mean - half, mean + half, count, failed)


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


def compare_pairs(
    scores: Mapping[str, Mapping[int, float | None]],
    against: Mapping[str, str],
) -> list[PairedComparison]:
    """Compares methods with their baselines; Holm's correction covers all of them.

    Args:
        scores: For each method, its scores by seed or by split; None for a failed run.
        against: The baseline of each method to compare, in the order wanted.
    """
    uncorrected = [
        _compare(method, scores[method], baseline, scores[baseline])
        for method, baseline in against.items()
    ]
    t_holm = holm([comparison.t_p for comparison in uncorrected])
    wilcoxon_holm = holm([comparison.wilcoxon_p for comparison in uncorrected])
    return [
        _with_verdict(comparison, t_p, wilcoxon_p)
        for comparison, t_p, wilcoxon_p in zip(
            uncorrected, t_holm, wilcoxon_holm, strict=True
        )
    ]


def compare_to_baseline(
    scores: Mapping[str, Mapping[int, float | None]], baseline: str
) -> list[PairedComparison]:
    """Compares every other method with one baseline."""
    return compare_pairs(
        scores, {method: baseline for method in scores if method != baseline}
    )


def welch(first: tuple[float, float, int], second: tuple[float, float, int]) -> Welch:
    """Welch's test between two (mean, standard deviation, number of runs).

    Raises:
        ValueError: A side has fewer than two runs.
    """
    (mean_1, std_1, runs_1), (mean_2, std_2, runs_2) = first, second
    difference = mean_1 - mean_2
    if min(runs_1, runs_2) < 2:
        raise ValueError("Welch's test needs two runs or more on both sides")
    standard_error = math.sqrt(std_1**2 / runs_1 + std_2**2 / runs_2)
    if standard_error == 0.0:
        return Welch(difference, 0.0, None, None, None)
    result = scipy.stats.ttest_ind_from_stats(
        mean_1, std_1, runs_1, mean_2, std_2, runs_2, equal_var=False
    )
    return Welch(
        difference,
        standard_error,
        difference / standard_error,
        float(result.pvalue),
        standard_error**4
        / (
            (std_1**2 / runs_1) ** 2 / (runs_1 - 1)
            + (std_2**2 / runs_2) ** 2 / (runs_2 - 1)
        ),
    )


def _half_interval(std: float, count: int) -> float:
    quantile = float(scipy.stats.t.ppf(0.5 + CONFIDENCE / 2, count - 1))
    return quantile * std / math.sqrt(count)


def _compare(
    method: str,
    scores: Mapping[int, float | None],
    baseline: str,
    baseline_scores: Mapping[int, float | None],
) -> PairedComparison:
    pairs = [
        (ours, theirs)
        for key in sorted(set(scores) & set(baseline_scores))
        if (ours := scores[key]) is not None
        and (theirs := baseline_scores[key]) is not None
    ]
    lost_pairs = len(set(scores) | set(baseline_scores)) - len(pairs)
    # Accuracies are multiples of 1 / (number of test nodes). Rounding makes equal
    # differences tie in Wilcoxon's test, whatever their last bits.
    differences = np.round([ours - theirs for ours, theirs in pairs], 9)
    summary = summarise(differences.tolist())
    t_p, wilcoxon_p, effect_size = _paired_tests(differences)
    return PairedComparison(
        method=method,
        baseline=baseline,
        difference=summary.mean,
        low=summary.low,
        high=summary.high,
        t_p=t_p,
        t_p_holm=None,
        wilcoxon_p=wilcoxon_p,
        wilcoxon_p_holm=None,
        effect_size=effect_size,
        correlation=_correlation(pairs),
        pairs=len(pairs),
        lost_pairs=lost_pairs,
        verdict="too few runs",
    )


def _paired_tests(
    differences: NDArray[np.float64],
) -> tuple[float | None, float | None, float | None]:
    """The p of the t-test, the p of Wilcoxon's test and the effect size."""
    if len(differences) < 2:
        return None, None, None
    if not differences.any():
        return 1.0, 1.0, 0.0
    signed_rank_p = wilcoxon_p(differences)
    if np.ptp(differences) == 0.0:
        # With few test nodes and few runs every pair may have the same difference.
        # t is infinite then, and its p means nothing.
        return signed_rank_p, signed_rank_p, None
    std = float(differences.std(ddof=1))
    effect_size = float(differences.mean()) / std
    t = effect_size * math.sqrt(len(differences))
    t_p = 2.0 * float(scipy.stats.t.sf(abs(t), len(differences) - 1))
    return t_p, signed_rank_p, effect_size


def _correlation(pairs: Sequence[tuple[float, float]]) -> float | None:
    if len(pairs) < 2:
        return None
    first, second = np.asarray(pairs).T
    if np.ptp(first) == 0.0 or np.ptp(second) == 0.0:
        return None
    return float(np.corrcoef(first, second)[0, 1])


def _with_verdict(
    comparison: PairedComparison, t_p_holm: float | None, wilcoxon_p_holm: float | None
) -> PairedComparison:
    verdict: Verdict = "within noise"
    if t_p_holm is None or comparison.difference is None:
        verdict = "too few runs"
    elif t_p_holm < ALPHA:
        verdict = "better" if comparison.difference > 0 else "worse"
    return replace(
        comparison,
        t_p_holm=t_p_holm,
        wilcoxon_p_holm=wilcoxon_p_holm,
        verdict=verdict,
    )
