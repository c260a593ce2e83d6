"""Estimates with bootstrap replicates, made by resampling independent blocks."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

RESAMPLES = 1000


@dataclass(frozen=True)
class Estimate:
    """Estimates with their bootstrap replicates.

    Estimates of one simulation share the resampled blocks. So the replicates of a
    difference are the differences of the replicates.

    Attributes:
        value: The estimates, of any shape.
        replicates: The same with one more dimension in front, the resamples.
    """

    value: FloatArray
    replicates: FloatArray

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """The lower and upper ends of the percentile interval."""
        tail = 50 * (1 - level)
        # Without interpolation, because infinite replicates cannot be interpolated.
        low, high = np.percentile(
            self.replicates, [tail, 100 - tail], axis=0, method="inverted_cdf"
        )
        return low, high

    @property
    def standard_error(self) -> FloatArray:
        """Standard deviation of the replicates."""
        return np.asarray(self.replicates.std(axis=0, ddof=1))

    def __abs__(self) -> "Estimate":
        return Estimate(np.abs(self.value), np.abs(self.replicates))

    def __sub__(self, other: "Estimate") -> "Estimate":
        return Estimate(self.value - other.value, self.replicates - other.replicates)

    def __mul__(self, other: "Estimate") -> "Estimate":
        return Estimate(self.value * other.value, self.replicates * other.replicates)

    def __truediv__(self, other: "Estimate") -> "Estimate":
        return Estimate(self.value / other.value, self.replicates / other.replicates)

    def square(self) -> "Estimate":
        """The estimates squared."""
        return Estimate(self.value**2, self.replicates**2)

    def root(self) -> "Estimate":
        """The square roots of the estimates."""
        return Estimate(np.sqrt(self.value), np.sqrt(self.replicates))

    def scaled(self, factor: float | FloatArray) -> "Estimate":
        """The estimates times known numbers."""
        return Estimate(self.value * factor, self.replicates * factor)

    def __getitem__(self, index: Any) -> "Estimate":
        replicate = (slice(None), *(index if isinstance(index, tuple) else (index,)))
        return Estimate(
            np.asarray(self.value[index]),
            self.replicates[replicate],
        )

    def p_values(self, truth: FloatArray | float) -> FloatArray:
        """Two-sided normal p-values of the hypothesis that `truth` is the value."""
        error = self.standard_error
        deviation = np.abs(self.value - truth)
        with np.errstate(divide="ignore", invalid="ignore"):
            score = np.where(deviation == 0, 0.0, deviation / error)
        return np.asarray(2 * scipy.stats.norm.sf(score))


def resampled_means(sums: FloatArray, block: int, seed: int) -> Estimate:
    """Means with bootstrap replicates, from sums over blocks of equal size.

    Blocks are independent and identically distributed, so whole blocks are drawn with
    replacement. The cost does not depend on the size of a block.

    Args:
        sums: The sum over each block; the first dimension is the blocks.
        block: Number of samples in one block.
        seed: The same seed draws the same blocks.
    """
    blocks = len(sums)
    random = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2**31,)))
    draws = random.multinomial(blocks, np.full(blocks, 1 / blocks), size=RESAMPLES)
    flat = sums.reshape(blocks, -1) / (blocks * block)
    replicates = draws.astype(np.float64) @ flat
    return Estimate(
        flat.sum(axis=0).reshape(sums.shape[1:]),
        replicates.reshape(RESAMPLES, *sums.shape[1:]),
    )
