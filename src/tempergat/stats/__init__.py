"""Statistics of scores: paired tests, equivalence, power, ranks, trends, regression."""

from tempergat.stats.bootstrap import Estimate, resampled_means
from tempergat.stats.equivalence import (
    deviation_distance,
    equivalence_p,
    paired_power,
)
from tempergat.stats.paired import (
    ALPHA,
    CONFIDENCE,
    PairedComparison,
    PairScores,
    Summary,
    Verdict,
    Welch,
    any_beats,
    best_set,
    compare_all,
    compare_pairs,
    compare_to_baseline,
    holm,
    ranked,
    summarise,
    welch,
)
from tempergat.stats.ranks import RankTable, average_ranks, critical_difference
from tempergat.stats.regression import Coefficient, least_squares
from tempergat.stats.trends import page_p, rises
from tempergat.stats.wilcoxon import wilcoxon_p

__all__ = [
    "ALPHA",
    "CONFIDENCE",
    "Coefficient",
    "Estimate",
    "PairScores",
    "PairedComparison",
    "RankTable",
    "Summary",
    "Verdict",
    "Welch",
    "any_beats",
    "average_ranks",
    "best_set",
    "compare_all",
    "compare_pairs",
    "compare_to_baseline",
    "critical_difference",
    "deviation_distance",
    "equivalence_p",
    "holm",
    "least_squares",
    "page_p",
    "paired_power",
    "ranked",
    "resampled_means",
    "rises",
    "summarise",
    "welch",
    "wilcoxon_p",
]
