"""Statistics of scores: paired tests, equivalence, power, ranks."""

from typing import TYPE_CHECKING

from tempergat.base import lazy_names

if TYPE_CHECKING:
    from .equivalence import deviation_distance as deviation_distance
    from .equivalence import equivalence_p as equivalence_p
    from .equivalence import paired_power as paired_power
    from .paired import ALPHA as ALPHA
    from .paired import CONFIDENCE as CONFIDENCE
    from .paired import PairedComparison as PairedComparison
    from .paired import PairScores as PairScores
    from .paired import Summary as Summary
    from .paired import Verdict as Verdict
    from .paired import Welch as Welch
    from .paired import any_beats as any_beats
    from .paired import best_set as best_set
    from .paired import compare_all as compare_all
    from .paired import compare_pairs as compare_pairs
    from .paired import compare_to_baseline as compare_to_baseline
    from .paired import holm as holm
    from .paired import ranked as ranked
    from .paired import summarise as summarise
    from .paired import welch as welch
    from .ranks import RankTable as RankTable
    from .ranks import average_ranks as average_ranks
    from .ranks import critical_difference as critical_difference
    from .wilcoxon import wilcoxon_p as wilcoxon_p
else:
    __all__, __getattr__, __dir__ = lazy_names(__name__)
