"""Page's test: does a value rise or fall over ordered levels?"""

import numpy as np
import scipy
from numpy.typing import NDArray

# Rounding to this many digits makes equal values tie, whatever their last bits.
_DIGITS = 9


def page_p(values: NDArray[np.float64]) -> float:
    """The two-sided p of Page's test for a trend along the columns.

    Args:
        values: [blocks, levels]. Values are ranked within a block, so blocks may differ
            in their means: here a block is a seed.
    """
    rounded = np.round(values, _DIGITS)
    sides = [
        float(scipy.stats.page_trend_test(side, method="asymptotic").pvalue)
        for side in (rounded, -rounded)
    ]
    return min(1.0, 2.0 * min(sides))


def rises(values: NDArray[np.float64]) -> bool:
    """Whether the average ranks of the columns rise from left to right.

    Args:
        values: [blocks, levels], as for `page_p`.
    """
    ranks = scipy.stats.rankdata(np.round(values, _DIGITS), axis=1)
    places = np.arange(ranks.shape[1])
    slope = ((ranks.mean(axis=0) - ranks.mean()) * (places - places.mean())).sum()
    return bool(slope > 0)
