"""Statistics of scores: paired tests, equivalence, power, ranks."""

from typing import TYPE_CHECKING

from tempergat.base import lazy_names, require_compare

if TYPE_CHECKING:
    from .best import BestSet as BestSet
    from .best import Claim as Claim
    from .best import best_set as best_set
    from .best import claim_beats as claim_beats
    from .best import claim_of as claim_of
    from .best import pairs_for_fewer as pairs_for_fewer
    from .best import shared_pairs as shared_pairs
    from .best import size_with as size_with
    from .hypothesis_tests import ALPHA as ALPHA
    from .hypothesis_tests import CONFIDENCE as CONFIDENCE
    from .hypothesis_tests import Welch as Welch
    from .hypothesis_tests import deviation_distance as deviation_distance
    from .hypothesis_tests import equivalence_p as equivalence_p
    from .hypothesis_tests import holm as holm
    from .hypothesis_tests import paired_power as paired_power
    from .hypothesis_tests import welch as welch
    from .hypothesis_tests import wilcoxon_p as wilcoxon_p
    from .hypothesis_tests import wilson as wilson
    from .paired import PairedComparison as PairedComparison
    from .paired import PairScores as PairScores
    from .paired import Summary as Summary
    from .paired import Verdict as Verdict
    from .paired import compare_all as compare_all
    from .paired import compare_pairs as compare_pairs
    from .paired import compare_to_baseline as compare_to_baseline
    from .paired import summarise as summarise
    from .ranks import RankTable as RankTable
    from .ranks import average_ranks as average_ranks
    from .ranks import critical_difference as critical_difference
else:
    require_compare(__name__)
    __all__, __getattr__, __dir__ = lazy_names(__name__)
