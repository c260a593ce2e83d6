"""Summaries of scores, and paired comparisons of two methods.

Results have the unit of the scores. Two methods are compared over pairs: runs with the
same seed, or means over the same split. The verdict is that of the paired t-test after
Holm's correction. Wilcoxon's test is reported next to it. Where every pair has the same
difference, the t-test takes what one test node changes in a score as the deviation.

Scores on splits that share training nodes are not independent. For these,
`test_to_train` is the number of test nodes per training node, r, and the variance of a
mean over n splits is (1/n + r) times that of one value, in place of 1/n (Nadeau and
Bengio, 2003).
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import scipy

from tempergat.stats.hypothesis_tests import ALPHA, CONFIDENCE, holm, wilcoxon_p

Verdict = Literal["better", "worse", "within noise", "no spread", "too few runs"]

# By seed or by split; None for a failed run.
PairScores = Mapping[int, float | None]


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
        values: Number of values that the interval is over: splits where there are
            several, otherwise runs.
    """

    mean: float | None
    std: float | None
    low: float | None
    high: float | None
    runs: int
    failed: int
    values: int


@dataclass(frozen=True)
class PairedComparison:
    """A method against a baseline over pairs.

    Attributes:
        difference: Mean of method minus baseline over the pairs.
        std: Standard deviation of the differences with ddof 1.
        standard_error: Standard error of `difference`, with which the tests are made.
        low: Lower end of the difference's 95 % t-interval; None where every pair has
            the same difference and it is not known what a test node changes.
        high: Upper end of it.
        t_p: Two-sided p of the paired t-test; None where `low` is None, but 1 where all
            differences are 0.
        t_p_holm: `t_p` after Holm's correction over all comparisons made together.
        plain_p_holm: The same without the correction for shared training nodes.
        wilcoxon_p: Two-sided p of Wilcoxon's signed-rank test, which is not corrected
            for shared training nodes.
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
    std: float | None
    standard_error: float | None
    low: float | None
    high: float | None
    t_p: float | None
    t_p_holm: float | None
    plain_p_holm: float | None
    wilcoxon_p: float | None
    wilcoxon_p_holm: float | None
    effect_size: float | None
    correlation: float | None
    pairs: int
    lost_pairs: int
    verdict: Verdict


def summarise(
    scores: Sequence[float], failed: int = 0, test_to_train: float = 0.0
) -> Summary:
    """Mean, standard deviation and 95 % interval of finished runs.

    Args:
        scores: One score per finished run, all finite.
        failed: Number of further runs that ended without a score.
        test_to_train: Test nodes per training node, for scores on splits that share
            training nodes.

    Raises:
        ValueError: A score is NaN or infinite.
    """
    values = np.asarray(scores, dtype=float)
    if not np.isfinite(values).all():
        raise ValueError("a score is not finite: record that run as failed instead")
    count = len(values)
    if count == 0:
        return Summary(None, None, None, None, 0, failed, 0)
    mean = float(values.mean())
    if count == 1:
        return Summary(mean, None, None, None, 1, failed, 1)
    std = float(values.std(ddof=1))
    quantile = float(scipy.special.stdtrit(count - 1, 0.5 + CONFIDENCE / 2))
    half = quantile * std * math.sqrt(1.0 / count + test_to_train)
    return Summary(mean, std, mean - half, mean + half, count, failed, count)


def compare_pairs(
    scores: Mapping[str, PairScores],
    against: Mapping[str, str] | Iterable[tuple[str, str]],
    test_to_train: float = 0.0,
    step: float = 0.0,
) -> list[PairedComparison]:
    """Compares methods with their baselines; Holm's correction covers all of them.

    Args:
        scores: For each method, its scores by seed or by split; None for a failed run.
        against: The baseline of each method to compare, in the order wanted; pairs of
            a method and a baseline where one has several.
        test_to_train: Test nodes per training node, for scores on splits that share
            training nodes.
        step: What one test node changes in a score, the least deviation that the
            differences are taken to have; 0 where it is not known.
    """
    pairs = against.items() if isinstance(against, Mapping) else against
    uncorrected = [
        _compare(
            method, scores[method], baseline, scores[baseline], test_to_train, step
        )
        for method, baseline in pairs
    ]
    corrected = zip(
        holm([comparison.t_p for comparison in uncorrected]),
        holm([comparison.plain_p_holm for comparison in uncorrected]),
        holm([comparison.wilcoxon_p for comparison in uncorrected]),
        strict=True,
    )
    return [
        replace(
            comparison,
            t_p_holm=t_p,
            plain_p_holm=plain_p,
            wilcoxon_p_holm=wilcoxon_p,
            verdict=_verdict(comparison, t_p),
        )
        for comparison, (t_p, plain_p, wilcoxon_p) in zip(
            uncorrected, corrected, strict=True
        )
    ]


def compare_all(
    scores: Mapping[str, PairScores], test_to_train: float = 0.0, step: float = 0.0
) -> list[PairedComparison]:
    """Compares every two methods; Holm's correction covers all pairs.

    Args:
        scores: For each method, its scores by seed or by split; None for a failed run.
            The first of two methods is the baseline.
        test_to_train: Test nodes per training node, for scores on splits that share
            training nodes.
        step: As for `compare_pairs`.
    """
    pairs = ((method, other) for other, method in itertools.combinations(scores, 2))
    return compare_pairs(scores, pairs, test_to_train, step)


def compare_to_baseline(
    scores: Mapping[str, PairScores],
    baseline: str,
    test_to_train: float = 0.0,
    step: float = 0.0,
) -> list[PairedComparison]:
    """Compares every other method with one baseline."""
    others = {method: baseline for method in scores if method != baseline}
    return compare_pairs(scores, others, test_to_train, step)


def _compare(
    method: str,
    scores: PairScores,
    baseline: str,
    baseline_scores: PairScores,
    test_to_train: float,
    step: float,
) -> PairedComparison:
    """The comparison with p-values that Holm's correction is yet to be applied to."""
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
    count, summary = len(pairs), summarise(differences.tolist())
    mean, std = summary.mean, summary.std
    is_zero = not differences.any()
    error = low = high = t_p = plain_p = signed_p = effect_size = None
    if mean is not None and std is not None:
        signed_p = 1.0 if is_zero else wilcoxon_p(differences)
        effect_size = mean / std if std > 0.0 else (0.0 if is_zero else None)
        error = max(std, step) * math.sqrt(1.0 / count + test_to_train)
        if error > 0.0 or is_zero:
            quantile = float(scipy.special.stdtrit(count - 1, 0.5 + CONFIDENCE / 2))
            low, high = mean - quantile * error, mean + quantile * error
            t_p = _t_p(mean, error, count)
            plain_p = _t_p(mean, max(std, step) * math.sqrt(1.0 / count), count)
    return PairedComparison(
        method=method,
        baseline=baseline,
        difference=mean,
        std=std,
        standard_error=error,
        low=low,
        high=high,
        t_p=t_p,
        t_p_holm=None,
        plain_p_holm=plain_p,
        wilcoxon_p=signed_p,
        wilcoxon_p_holm=None,
        effect_size=effect_size,
        correlation=_correlation(pairs),
        pairs=count,
        lost_pairs=lost_pairs,
        verdict="too few runs",
    )


def _t_p(mean: float, error: float, count: int) -> float:
    """The two-sided p of the paired t-test."""
    return (
        2.0 * float(scipy.special.stdtr(count - 1, -abs(mean) / error)) if mean else 1.0
    )


def _correlation(pairs: Sequence[tuple[float, float]]) -> float | None:
    if len(pairs) < 2:
        return None
    first, second = np.asarray(pairs).T
    if np.ptp(first) == 0.0 or np.ptp(second) == 0.0:
        return None
    return float(np.corrcoef(first, second)[0, 1])


def _verdict(comparison: PairedComparison, t_p_holm: float | None) -> Verdict:
    if comparison.std is None or comparison.difference is None:
        return "too few runs"
    if t_p_holm is None:
        return "no spread"
    if t_p_holm >= ALPHA:
        return "within noise"
    return "better" if comparison.difference > 0 else "worse"
