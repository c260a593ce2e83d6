"""Moments of the logits by simulation: two neighbours of each class per target.

Two neighbours of one target share its noise. The product of their distances separates
the target's part of the variance, which the softmax cancels, from the neighbours' part.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from studies.theory.model import FloatArray, GaussianNoise, MissingNoise, Setting
from studies.theory.neighbourhood import (
    BLOCK,
    CHUNK,
    Chunk,
    block_sums,
    run_chunks,
)
from tempergat.stats import Estimate, resampled_means

SAME, OTHER, SAME_SQUARED, OTHER_SQUARED, SAME_PRODUCT, OTHER_PRODUCT, GAP_PRODUCT = (
    range(7)
)


@dataclass(frozen=True)
class LogitSample:
    """Estimates ``[noises, variants]``; variants are plain, or ungated and gated."""

    sums: FloatArray
    seed: int

    def mean(self, other: bool) -> Estimate:
        """Mean distance to a neighbour of the same or of the other class."""
        return self._means[..., OTHER if other else SAME]

    def variance(self, other: bool) -> Estimate:
        """Variance of the distance, over targets and neighbours."""
        means = self._means
        square = means[..., OTHER_SQUARED if other else SAME_SQUARED]
        return square - means[..., OTHER if other else SAME].square()

    def neighbour_variance(self, other: bool) -> Estimate:
        """The part of the variance that differs among one target's neighbours."""
        means = self._means
        square = means[..., OTHER_SQUARED if other else SAME_SQUARED]
        return square - means[..., OTHER_PRODUCT if other else SAME_PRODUCT]

    def gap(self) -> Estimate:
        """The class-separation logit gap."""
        means = self._means
        return means[..., OTHER] - means[..., SAME]

    def squared_gap(self) -> Estimate:
        """Mean over targets of the squared gap."""
        return self._means[..., GAP_PRODUCT]

    @cached_property
    def _means(self) -> Estimate:
        return resampled_means(self.sums, BLOCK, self.seed)


def simulate_logits(
    setting: Setting,
    noises: Sequence[GaussianNoise] | Sequence[MissingNoise],
    *,
    targets: int,
    seed: int,
    threads: int = 2,
) -> LogitSample:
    """Draw targets with two neighbours of each of two classes.

    Args:
        setting: The neighbourhood before noise; its degree and intensities are not
            used.
        noises: Noises of one kind.
        targets: Number of targets, rounded up to whole chunks of 2000.
        seed: Seed of the random numbers.
        threads: Worker threads.
    """
    labels = np.zeros((4, CHUNK), np.int8)
    labels[2:] = 1

    def chunk(random: np.random.Generator) -> FloatArray:
        masks = isinstance(noises[0], MissingNoise)
        drawn = Chunk(setting, labels, random, masks=masks, messages=False)
        return np.stack(
            [
                # The third variant, the gate after attention, has the logits of the
                # first.
                np.stack(
                    [_sums(case.distance) for case in drawn.attended(noise)[:2]], axis=1
                )
                for noise in noises
            ],
            axis=1,
        )

    return LogitSample(run_chunks(chunk, targets, seed, threads), seed)


def _sums(distance: np.ndarray) -> FloatArray:
    same, same_again, other, other_again = distance
    columns = (
        same,
        other,
        same * same,
        other * other,
        same * same_again,
        other * other_again,
        (other - same) * (other_again - same_again),
    )
    return np.stack([block_sums(column) for column in columns], axis=-1)
