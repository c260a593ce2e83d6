"""What a set of scores does and does not show.

Scores may be in any unit; everything returned is in the same one. Two methods are
compared over pairs (runs with the same seed, or the means over the same split), the
verdict is the Holm-corrected paired t-test's, and Wilcoxon's test stands beside it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats as scipy_stats

CONFIDENCE = 0.95
ALPHA = 1.0 - CONFIDENCE

Verdict = Literal["better", "worse", "within noise", "too few runs"]


@dataclass(frozen=True)
class Summary:
    """Scores of one method: finished runs described, failed ones counted.

    Attributes:
        mean: Mean score; None when no run finished.
        std: Standard deviation with ddof 1; None for fewer than two runs.
        low: Lower end of the 95 % t-interval of the mean; None without `std`.
        high: Upper end of it.
        runs: Finished runs, those the numbers above describe.
        failed: Runs that ended without a score.
    """

    mean: float | None
    std: float | None
    low: float | None
    high: float | None
    runs: int
    failed: int


@dataclass(frozen=True)
class Comparison:
    """A method against a baseline over pairs.

    Attributes:
        difference: Mean of method minus baseline over the pairs.
        low: Lower end of the difference's 95 % t-interval.
        high: Upper end of it.
        t_p: Two-sided p of the paired t-test; Wilcoxon's where all pairs differ alike.
        t_p_holm: The same, Holm-corrected over the family it was tested in.
        wilcoxon_p: Two-sided p of Wilcoxon's signed-rank test.
        wilcoxon_p_holm: The same, Holm-corrected.
        effect_size: Cohen's d of the pairs: mean over standard deviation of the
            differences; None where they do not vary.
        correlation: Pearson correlation of the two methods' scores over the pairs.
        pairs: Pairs with a score on both sides.
        lost_pairs: Pairs with a failed or missing run on either side.
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
    """Two means with their standard deviations, compared without pairing.

    Attributes:
        difference: First mean minus second.
        standard_error: Standard error of the difference.
        in_standard_errors: The difference divided by it, Welch's t; None where
            neither side varies.
        p: Two-sided p; None with `in_standard_errors`.
    """

    difference: float
    standard_error: float
    in_standard_errors: float | None
    p: float | None


@dataclass(frozen=True)
class RankTable:
    """Methods ranked on each dataset (1 is best), and what the ranks show.

    Attributes:
        average: Average rank of each method, best first.
        ranks: Rank of each method on each dataset, ties averaged.
        friedman: Friedman's chi-squared; None for fewer than three methods.
        friedman_p: Its p.
        critical_difference: Nemenyi's: average ranks closer than this are not told
            apart at 5 %.
    """

    average: dict[str, float]
    ranks: dict[str, dict[str, float]]
    friedman: float | None
    friedman_p: float | None
    critical_difference: float

    @property
    def datasets(self) -> tuple[str, ...]:
        """The datasets ranked over."""
        return tuple(self.ranks)


def summarise(scores: Sequence[float], failed: int = 0) -> Summary:
    """Mean, standard deviation and 95 % interval of finished runs.

    Args:
        scores: One score per finished run, all finite.
        failed: How many further runs ended without a score.
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


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down correction; a None stays None and does not count."""
    order = sorted(
        (index for index, p in enumerate(p_values) if p is not None),
        key=lambda index: p_values[index] or 0.0,
    )
    corrected: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for position, index in enumerate(order):
        p = p_values[index]
        assert p is not None
        largest = max(largest, min(1.0, (len(order) - position) * p))
        corrected[index] = largest
    return corrected


def compare_pairs(
    scores: Mapping[str, Mapping[int, float | None]],
    against: Mapping[str, str],
) -> list[Comparison]:
    """Compare methods with their baselines as one Holm-corrected family.

    Args:
        scores: Per method, the score of each pair's key (a seed, or a split); None
            for a failed run.
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
) -> list[Comparison]:
    """Compare every other method with one baseline."""
    return compare_pairs(
        scores, {method: baseline for method in scores if method != baseline}
    )


def welch(first: tuple[float, float, int], second: tuple[float, float, int]) -> Welch:
    """Welch's test between two (mean, standard deviation, runs)."""
    (mean_1, std_1, runs_1), (mean_2, std_2, runs_2) = first, second
    difference = mean_1 - mean_2
    if min(runs_1, runs_2) < 2:
        raise ValueError("Welch's test needs two runs or more on both sides")
    standard_error = math.sqrt(std_1**2 / runs_1 + std_2**2 / runs_2)
    if standard_error == 0.0:
        return Welch(difference, 0.0, None, None)
    result = scipy_stats.ttest_ind_from_stats(
        mean_1, std_1, runs_1, mean_2, std_2, runs_2, equal_var=False
    )
    return Welch(
        difference,
        standard_error,
        difference / standard_error,
        float(result.pvalue),
    )


def critical_difference(methods: int, datasets: int) -> float:
    """Nemenyi's critical difference of average ranks at 5 %.

    Args:
        methods: How many methods are ranked, two or more.
        datasets: How many datasets they are ranked on, two or more.
    """
    if methods < 2 or datasets < 2:
        raise ValueError(
            f"average ranks need two methods and two datasets or more, not {methods} "
            f"and {datasets}"
        )
    q = float(scipy_stats.studentized_range.ppf(CONFIDENCE, methods, math.inf))
    return q / math.sqrt(2) * math.sqrt(methods * (methods + 1) / (6 * datasets))


def average_ranks(scores: Mapping[str, Mapping[str, float]]) -> RankTable:
    """Rank methods on every dataset, larger scores first.

    Args:
        scores: Per dataset, the score of each method; the same methods on each.
    """
    methods = list(next(iter(scores.values()), {}))
    for dataset, row in scores.items():
        if set(row) != set(methods):
            missing = sorted(set(row) ^ set(methods))
            raise ValueError(
                f"{dataset} ranks other methods than the rest: {', '.join(missing)}"
            )
    difference = critical_difference(len(methods), len(scores))
    ranks = {
        dataset: dict(
            zip(
                methods,
                # Rounding keeps sums of equal scores from being told apart by the
                # last bit.
                scipy_stats.rankdata(
                    [-round(row[method], 9) for method in methods]
                ).tolist(),
                strict=True,
            )
        )
        for dataset, row in scores.items()
    }
    average = {
        method: float(np.mean([row[method] for row in ranks.values()]))
        for method in methods
    }
    friedman = friedman_p = None
    if len(methods) >= 3 and any(len(set(row.values())) > 1 for row in ranks.values()):
        columns = [[row[method] for row in ranks.values()] for method in methods]
        result = scipy_stats.friedmanchisquare(*columns)
        friedman, friedman_p = float(result.statistic), float(result.pvalue)
    return RankTable(
        dict(sorted(average.items(), key=lambda item: item[1])),
        ranks,
        friedman,
        friedman_p,
        difference,
    )


def _half_interval(std: float, count: int) -> float:
    quantile = float(scipy_stats.t.ppf(0.5 + CONFIDENCE / 2, count - 1))
    return quantile * std / math.sqrt(count)


def _compare(
    method: str,
    scores: Mapping[int, float | None],
    baseline: str,
    baseline_scores: Mapping[int, float | None],
) -> Comparison:
    pairs = [
        (ours, theirs)
        for key in sorted(set(scores) & set(baseline_scores))
        if (ours := scores[key]) is not None
        and (theirs := baseline_scores[key]) is not None
    ]
    lost_pairs = len(set(scores) | set(baseline_scores)) - len(pairs)
    # Accuracies are multiples of one over the test nodes: without rounding, equal
    # differences would be ranked by their last bits.
    differences = np.round([ours - theirs for ours, theirs in pairs], 9)
    summary = summarise(differences.tolist())
    t_p, wilcoxon_p, effect_size = _paired_tests(differences)
    return Comparison(
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
    """The p of the t-test and of Wilcoxon's, and the effect size."""
    if len(differences) < 2:
        return None, None, None
    if not differences.any():
        return 1.0, 1.0, 0.0
    wilcoxon_p = float(scipy_stats.wilcoxon(differences).pvalue)
    if np.ptp(differences) == 0.0:
        # The same difference in every pair, as happens to counts of few nodes over
        # few runs: t would be infinite, and its p no measure of anything.
        return wilcoxon_p, wilcoxon_p, None
    std = float(differences.std(ddof=1))
    effect_size = float(differences.mean()) / std
    t = effect_size * math.sqrt(len(differences))
    t_p = 2.0 * float(scipy_stats.t.sf(abs(t), len(differences) - 1))
    return t_p, wilcoxon_p, effect_size


def _correlation(pairs: Sequence[tuple[float, float]]) -> float | None:
    if len(pairs) < 2:
        return None
    first, second = np.asarray(pairs).T
    if np.ptp(first) == 0.0 or np.ptp(second) == 0.0:
        return None
    return float(np.corrcoef(first, second)[0, 1])


def _with_verdict(
    comparison: Comparison, t_p_holm: float | None, wilcoxon_p_holm: float | None
) -> Comparison:
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
