"""Moments of the logits by simulation: two neighbours of each class per target.

Two neighbours of one target share its noise. The product of their distances separates
the target's part of the variance, which the softmax cancels, from the neighbours' part.
"""

from dataclasses import dataclass

import numpy as np

from studies.theory.bootstrap import Estimate, resampled_means
from studies.theory.model import FloatArray, MissingNoise, Noises, Setting
from studies.theory.neighbourhood import (
    BLOCK,
    CHUNK,
    Chunk,
    Single,
    block_sums,
    run_chunks,
)


@dataclass(frozen=True)
class LogitSample:
    """Estimates ``[noises, variants]``; variants are plain, or ungated and gated.

    ``means`` has the means of the columns of `_sums` in its last dimension. Functions
    take whether the neighbour is of the other class, not of the same.
    """

    means: Estimate

    def mean(self, other: bool) -> Estimate:
        """Mean distance to a neighbour."""
        return self.means[..., int(other)]

    def variance(self, other: bool) -> Estimate:
        """Variance of the distance, over targets and neighbours."""
        return self.means[..., 2 + other] - self.mean(other).square()

    def neighbour_variance(self, other: bool) -> Estimate:
        """The part of the variance that differs among one target's neighbours."""
        return self.means[..., 2 + other] - self.means[..., 4 + other]

    def gap(self) -> Estimate:
        """The class-separation logit gap."""
        return self.mean(other=True) - self.mean(other=False)

    def squared_gap(self) -> Estimate:
        """Mean over targets of the squared gap."""
        return self.means[..., 6]


def simulate_logits(
    setting: Setting, noises: Noises, *, targets: int, seed: int, threads: int = 2
) -> LogitSample:
    """Draw targets with two neighbours of each of two classes."""
    labels = np.zeros((4, CHUNK), np.int8)
    labels[2:] = 1

    def chunk(random: np.random.Generator) -> FloatArray:
        masks = isinstance(noises[0], MissingNoise)
        drawn = Chunk(setting, labels, random, masks=masks, messages=False)
        # The third variant, the gate after attention, has the logits of the first.
        cases = [drawn.attended(noise)[:2] for noise in noises]
        sums = [np.stack([_sums(one.distance) for one in two], axis=1) for two in cases]
        return np.stack(sums, axis=1)

    sums = run_chunks(chunk, targets, seed, threads)
    return LogitSample(resampled_means(sums, BLOCK, seed))


def _sums(distance: Single) -> FloatArray:
    same, same_again, other, other_again = distance
    return block_sums(
        same,
        other,
        same * same,
        other * other,
        same * same_again,
        other * other_again,
        (other - same) * (other_again - same_again),
    )
