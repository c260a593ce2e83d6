"""Statistics of scores: paired tests, equivalence, power, ranks, trends."""

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
from tempergat.stats.trends import page_p, rises
from tempergat.stats.wilcoxon import wilcoxon_p

__all__ = [
    "ALPHA",
    "CONFIDENCE",
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
    "page_p",
    "paired_power",
    "ranked",
    "rises",
    "summarise",
    "welch",
    "wilcoxon_p",
]
