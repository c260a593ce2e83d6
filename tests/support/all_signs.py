"""Wilcoxon's signed-rank test by counting every choice of signs."""

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats


def wilcoxon_by_all_signs(values: ArrayLike) -> float:
    """The exact two-sided p, with ties; zeros are left out.

    scipy before 1.15 gives an approximation where there are ties or zeros.
    """
    numbers = np.asarray(values, dtype=np.float64)
    nonzero = numbers[numbers != 0.0]
    ranks = stats.rankdata(np.abs(nonzero))
    signs = np.arange(2 ** len(ranks))[:, None] >> np.arange(len(ranks)) & 1
    sums, observed = signs @ ranks, ranks[nonzero > 0.0].sum()
    tail = min((sums <= observed).mean(), (sums >= observed).mean())
    return min(1.0, 2.0 * float(tail))
