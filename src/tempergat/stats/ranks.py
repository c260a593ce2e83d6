"""Ranks of methods over datasets: averages, Friedman's test, critical differences."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy

from tempergat.stats.hypothesis_tests import CONFIDENCE


@dataclass(frozen=True)
class RankTable:
    """Methods ranked on each dataset, 1 being the best.

    Attributes:
        average: Average rank of each method, best first.
        ranks: Rank of each method on each dataset, ties averaged.
        friedman: Friedman's chi-squared; None for fewer than three methods, or where
            all methods tie on every dataset.
        friedman_p: p of Friedman's test.
        critical_difference: Average ranks that differ by no more are not significantly
            different at 5 %; see the function.
    """

    average: dict[str, float]
    ranks: dict[str, dict[str, float]]
    friedman: float | None
    friedman_p: float | None
    critical_difference: float

    @property
    def datasets(self) -> tuple[str, ...]:
        """The datasets the methods were ranked on."""
        return tuple(self.ranks)

    @property
    def largest_difference(self) -> int:
        """The largest possible one of average ranks: always first, and always last."""
        return len(self.average) - 1

    @property
    def test(self) -> str:
        """The name of the test that the critical difference is of."""
        return "exact sign test" if len(self.average) == 2 else "Nemenyi"

    @property
    def too_few_datasets(self) -> bool:
        """Whether not even this difference would be significant."""
        return self.critical_difference >= self.largest_difference


def critical_difference(methods: int, datasets: int, ties: int = 0) -> float:
    """The largest difference of average ranks that is not significant at 5 %.

    Nemenyi's for three methods or more. Of two, where it would claim too much, that of
    the exact sign test.

    Args:
        methods: Number of methods, two or more.
        datasets: Number of datasets, two or more.
        ties: On how many of them two methods tie.

    Raises:
        ValueError: There are fewer.
    """
    if methods < 2 or datasets < 2:
        raise ValueError(
            f"average ranks need two methods and two datasets or more, not {methods} "
            f"and {datasets}"
        )
    if methods == 2:
        untied = datasets - ties
        losses = np.arange(untied + 1)
        is_few = 2.0 * scipy.stats.binom.cdf(losses, untied, 0.5) < 1.0 - CONFIDENCE
        # Means of ranks differ in their last bits.
        most = (untied - 2 * int(is_few.sum())) / datasets + 1e-9
        return most if is_few.any() else 1.0
    q = float(scipy.stats.studentized_range.ppf(CONFIDENCE, methods, math.inf))
    return q / math.sqrt(2) * math.sqrt(methods * (methods + 1) / (6 * datasets))


def average_ranks(scores: Mapping[str, Mapping[str, float]]) -> RankTable:
    """Ranks methods on every dataset, larger scores first, and tests the ranks.

    Args:
        scores: For each dataset, the score of each method. Every dataset has the same
            methods, two or more, and there are two datasets or more.

    Raises:
        ValueError: A score is NaN or infinite, a method is missing on a dataset, or
            there are too few methods or datasets.
    """
    methods = list(next(iter(scores.values()), {}))
    for dataset, row in scores.items():
        if set(row) != set(methods):
            missing = sorted(set(row) ^ set(methods))
            raise ValueError(
                f"{dataset} ranks other methods than the rest: {', '.join(missing)}"
            )
        for method, score in row.items():
            if not math.isfinite(score):
                raise ValueError(
                    f"the score of {method} on {dataset} is {score}; leave the method "
                    "or the dataset out of the ranking"
                )
    ranks = {}
    for dataset, row in scores.items():
        # Rounding makes equal scores tie, whatever their last bits.
        rounded = [-round(row[method], 9) for method in methods]
        of_methods = scipy.stats.rankdata(rounded).tolist()
        ranks[dataset] = dict(zip(methods, of_methods, strict=True))
    columns = {m: [row[m] for row in ranks.values()] for m in methods}
    average = {method: float(np.mean(column)) for method, column in columns.items()}
    ties = sum(len(set(row.values())) == 1 for row in ranks.values())
    difference = critical_difference(len(methods), len(scores), ties)
    friedman = friedman_p = None
    if len(methods) >= 3 and any(len(set(row.values())) > 1 for row in ranks.values()):
        result = scipy.stats.friedmanchisquare(*columns.values())
        friedman, friedman_p = float(result.statistic), float(result.pvalue)
    return RankTable(
        dict(sorted(average.items(), key=lambda item: item[1])),
        ranks,
        friedman,
        friedman_p,
        difference,
    )
