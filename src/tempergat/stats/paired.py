"""Summaries of scores, and paired comparisons of two methods.

Results have the unit of the scores. Two methods are compared over pairs: runs with the
same seed, or means over the same split. The verdict is that of the paired t-test after
Holm's correction. Wilcoxon's test is reported next to it.

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
from numpy.typing import NDArray

from tempergat.stats.hypothesis_tests import ALPHA, CONFIDENCE, holm, wilcoxon_p

Verdict = Literal["better", "worse", "within noise", "too few runs"]

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
        return Summary(None, None, None, None, 0, failed)
    mean = float(values.mean())
    if count == 1:
        return Summary(mean, None, None, None, 1, failed)
    std = float(values.std(ddof=1))
    quantile = float(scipy.special.stdtrit(count - 1, 0.5 + CONFIDENCE / 2))
    half = quantile * std * math.sqrt(1.0 / count + test_to_train)
    return Summary(mean, std, mean - half, mean + half, count, failed)


def compare_pairs(
    scores: Mapping[str, PairScores],
    against: Mapping[str, str] | Iterable[tuple[str, str]],
    test_to_train: float = 0.0,
) -> list[PairedComparison]:
    """Compares methods with their baselines; Holm's correction covers all of them.

    Args:
        scores: For each method, its scores by seed or by split; None for a failed run.
        against: The baseline of each method to compare, in the order wanted; pairs of
            a method and a baseline where one has several.
        test_to_train: Test nodes per training node, for scores on splits that share
            training nodes.
    """
    pairs = against.items() if isinstance(against, Mapping) else against
    uncorrected = [
        _compare(method, scores[method], baseline, scores[baseline], test_to_train)
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
            verdict=_verdict(comparison.difference, t_p),
        )
        for comparison, (t_p, plain_p, wilcoxon_p) in zip(
            uncorrected, corrected, strict=True
        )
    ]


def compare_all(
    scores: Mapping[str, PairScores], test_to_train: float = 0.0
) -> list[PairedComparison]:
    """Compares every two methods; Holm's correction covers all pairs.

    Args:
        scores: For each method, its scores by seed or by split; None for a failed run.
            The first of two methods is the baseline.
        test_to_train: Test nodes per training node, for scores on splits that share
            training nodes.
    """
    pairs = ((method, other) for other, method in itertools.combinations(scores, 2))
    return compare_pairs(scores, pairs, test_to_train)


def ranked(
    scores: Mapping[str, PairScores], means: Mapping[str, float]
) -> dict[str, PairScores]:
    """The scores of methods that have a mean, highest mean first.

    Methods without two finished pairs with any other come last, whatever their mean:
    no test says anything about them.
    """
    finished = {m: {k for k, s in scores[m].items() if s is not None} for m in means}

    def place(method: str) -> tuple[bool, float]:
        others = [pairs for other, pairs in finished.items() if other != method]
        is_tested = any(len(finished[method] & pairs) > 1 for pairs in others)
        return is_tested, means[method]

    return {m: scores[m] for m in sorted(means, key=place, reverse=True)}


def best_set(pairs: Sequence[PairedComparison]) -> tuple[str, ...]:
    """The method of the highest mean and those tested and not shown to be worse.

    Args:
        pairs: What `compare_all` gives for scores in the order of `ranked`.

    Returns:
        The methods in that order; none of them where no test could be made.
    """
    if all(comparison.t_p is None for comparison in pairs):
        return ()
    best = pairs[0].baseline
    against_best = [c for c in pairs if c.baseline == best and c.t_p is not None]
    return (best, *(c.method for c in against_best if c.verdict != "worse"))


def any_beats(
    scores: Mapping[str, PairScores], baseline: str, test_to_train: float = 0.0
) -> bool | None:
    """Whether some other method is shown to be better than a baseline.

    The tests are one-sided paired t-tests, Holm-corrected over the methods.

    Returns:
        None where no method has two pairs with the baseline.
    """
    one_sided = [
        c.t_p / 2.0 if c.difference > 0.0 else 1.0 - c.t_p / 2.0
        for c in compare_to_baseline(scores, baseline, test_to_train)
        if c.t_p is not None and c.difference is not None
    ]
    return min(holm(one_sided)) < ALPHA if one_sided else None


def compare_to_baseline(
    scores: Mapping[str, PairScores], baseline: str, test_to_train: float = 0.0
) -> list[PairedComparison]:
    """Compares every other method with one baseline."""
    others = {method: baseline for method in scores if method != baseline}
    return compare_pairs(scores, others, test_to_train)


def _compare(
    method: str,
    scores: PairScores,
    baseline: str,
    baseline_scores: PairScores,
    test_to_train: float,
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
    summary = summarise(differences.tolist(), test_to_train=test_to_train)
    wilcoxon_p, effect_size = _signed_ranks_and_effect(differences)
    return PairedComparison(
        method=method,
        baseline=baseline,
        difference=summary.mean,
        low=summary.low,
        high=summary.high,
        t_p=_t_p(effect_size, len(pairs), test_to_train, wilcoxon_p),
        t_p_holm=None,
        plain_p_holm=_t_p(effect_size, len(pairs), 0.0, wilcoxon_p),
        wilcoxon_p=wilcoxon_p,
        wilcoxon_p_holm=None,
        effect_size=effect_size,
        correlation=_correlation(pairs),
        pairs=len(pairs),
        lost_pairs=lost_pairs,
        verdict="too few runs",
    )


def _signed_ranks_and_effect(
    differences: NDArray[np.float64],
) -> tuple[float | None, float | None]:
    """The p of Wilcoxon's test, and the effect size."""
    if len(differences) < 2:
        return None, None
    if not differences.any():
        return 1.0, 0.0
    if np.ptp(differences) == 0.0:
        return wilcoxon_p(differences), None
    effect_size = float(differences.mean()) / float(differences.std(ddof=1))
    return wilcoxon_p(differences), effect_size


def _t_p(
    effect_size: float | None,
    count: int,
    test_to_train: float,
    signed_rank_p: float | None,
) -> float | None:
    """The two-sided p of the paired t-test."""
    if effect_size is None:
        # With few test nodes and few runs every pair may have the same difference.
        # t is infinite then, and its p means nothing.
        return signed_rank_p
    t = effect_size / math.sqrt(1.0 / count + test_to_train)
    return 2.0 * float(scipy.special.stdtr(count - 1, -abs(t)))


def _correlation(pairs: Sequence[tuple[float, float]]) -> float | None:
    if len(pairs) < 2:
        return None
    first, second = np.asarray(pairs).T
    if np.ptp(first) == 0.0 or np.ptp(second) == 0.0:
        return None
    return float(np.corrcoef(first, second)[0, 1])


def _verdict(difference: float | None, t_p_holm: float | None) -> Verdict:
    if t_p_holm is None or difference is None:
        return "too few runs"
    if t_p_holm >= ALPHA:
        return "within noise"
    return "better" if difference > 0 else "worse"
