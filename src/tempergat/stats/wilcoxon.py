"""Wilcoxon's signed-rank test, exact with ties and zeros."""

import numpy as np
import scipy
from numpy.typing import ArrayLike

# The time of the exact p grows with the cube of the number of values.
_MOST_EXACT = 200


def wilcoxon_p(values: ArrayLike) -> float:
    """The two-sided p that values are symmetric about 0.

    Zeros are left out, and ties have the mean of their ranks. The p is exact for up to
    200 values; for more, it is that of the normal distribution.

    Args:
        values: Not all of them 0.
    """
    found = np.asarray(values, dtype=np.float64)
    nonzero = found[found != 0.0]
    if len(nonzero) > _MOST_EXACT:
        return float(scipy.stats.wilcoxon(nonzero, method="approx").pvalue)
    # Mean ranks are multiples of a half.
    ranks = (2 * scipy.stats.rankdata(np.abs(nonzero))).astype(int)
    # The probability of every sum of positive ranks: each sign is even.
    chances = np.zeros(ranks.sum() + 1)
    chances[0] = 1.0
    for rank in ranks:
        chances[rank:] += chances[:-rank].copy()
        chances /= 2.0
    observed = ranks[nonzero > 0.0].sum()
    tail = min(chances[: observed + 1].sum(), chances[observed:].sum())
    return min(1.0, 2.0 * float(tail))
