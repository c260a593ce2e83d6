"""SNR(T) by simulation, with and without gates.

Only targets of the first class are drawn. Exchanging the first two classes mirrors
every distribution here, because both noises are symmetric. So the score of the second
class is that of the first with the sign flipped: SNR = sqrt(2) mean / std.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from studies.theory.model import FloatArray, GaussianNoise, MissingNoise, Setting
from studies.theory.neighbourhood import (
    BLOCK,
    CHUNK,
    Attended,
    Chunk,
    Mask,
    Single,
    block_sums,
    draw_degrees,
    draw_labels,
    run_chunks,
    variants_of,
)
from tempergat.stats import Estimate, resampled_means

# Above this the variance is only rounding error, and the SNR is given as infinite.
LARGEST_SNR = 1e6

SCORE, SCORE_SQUARED, CONCENTRATION, READOUT, READOUT_SQUARED = range(5)


@dataclass(frozen=True)
class Simulation:
    """Sums over blocks of targets; all estimates and intervals come from these.

    ``sums`` is ``[blocks, noises, variants, temperatures, statistics]``. The score is
    ``R = sum alpha y``, the concentration ``sum alpha^2``, and the readout the layer's
    output along the line between the two class means.
    """

    variants: tuple[str, ...]
    temperatures: tuple[float, ...]
    sums: FloatArray
    seed: int

    def snr(self) -> Estimate:
        """SNR of the label score, ``[noises, variants, temperatures]``."""
        return self._ratio(SCORE, SCORE_SQUARED)

    def readout_snr(self) -> Estimate:
        """SNR of the layer's output along the line between class means."""
        return self._ratio(READOUT, READOUT_SQUARED)

    def mean_score(self) -> Estimate:
        """``E[R | y_i = +1]``."""
        return self._means[..., SCORE]

    def variance(self) -> Estimate:
        """``Var(R | y_i = +1)``."""
        means = self._means
        return means[..., SCORE_SQUARED] - means[..., SCORE].square()

    def concentration(self) -> Estimate:
        """``E[sum_j alpha_j^2]``."""
        return self._means[..., CONCENTRATION]

    @cached_property
    def _means(self) -> Estimate:
        return resampled_means(self.sums, BLOCK, self.seed)

    def _ratio(self, first: int, second: int) -> Estimate:
        def ratio(means: FloatArray) -> FloatArray:
            variance = np.maximum(means[..., second] - means[..., first] ** 2, 0.0)
            with np.errstate(divide="ignore"):
                size = means[..., first] * np.sqrt(2 / variance)
            return np.where(np.abs(size) > LARGEST_SNR, np.copysign(np.inf, size), size)

        means = self._means
        return Estimate(ratio(means.value), ratio(means.replicates))


def simulate(
    setting: Setting,
    noises: Sequence[GaussianNoise] | Sequence[MissingNoise],
    temperatures: Sequence[float],
    *,
    targets: int,
    seed: int,
    readout: bool = False,
    threads: int = 2,
) -> Simulation:
    """Draw neighbourhoods once and score them under every noise and temperature.

    All noises, variants and temperatures see the same labels, masks and standard
    normals. The result depends on the seed, not on the number of threads.

    Args:
        setting: The neighbourhood before noise.
        noises: Noises of one kind.
        temperatures: Softmax temperatures; ``inf`` is uniform attention.
        targets: Number of targets, rounded up to whole chunks of 2000.
        seed: Seed of the random numbers.
        readout: Whether to compute the readout; otherwise it is zero.
        threads: Worker threads.
    """
    if min(temperatures) <= 0:
        raise ValueError(f"temperatures must be positive, got {min(temperatures)}")
    if len({type(noise) for noise in noises}) != 1:
        raise ValueError("give one or more noises, all gaussian or all missing")
    label_scores = np.zeros(setting.classes, np.float32)
    label_scores[:2] = 1, -1

    def chunk(random: np.random.Generator) -> FloatArray:
        present = draw_degrees(setting, random)
        labels = draw_labels(setting, random, len(present))
        masks = isinstance(noises[0], MissingNoise)
        drawn = Chunk(setting, labels, random, masks=masks, messages=readout)
        scorer = _Scorer(present, label_scores[labels], setting.self_loop)
        return np.stack(
            [
                np.stack(
                    [scorer.sums(case, temperatures) for case in drawn.attended(noise)],
                    axis=1,
                )
                for noise in noises
            ],
            axis=1,
        )

    return Simulation(
        variants_of(noises[0]),
        tuple(temperatures),
        run_chunks(chunk, targets, seed, threads),
        seed,
    )


class _Scorer:
    """Softmax attention over one chunk, and the labels and features it averages."""

    def __init__(self, present: Mask, label_score: Single, self_loop: bool) -> None:
        self.absent = None if present.all() else ~present
        self.label_score = label_score
        self.self_loop = self_loop

    def sums(self, case: Attended, temperatures: Sequence[float]) -> FloatArray:
        """Block sums of one variant, ``[blocks, temperatures, statistics]``."""
        distance = case.distance
        if self.absent is not None:
            distance = np.where(self.absent, np.float32(np.inf), distance)
        # The largest exponent is zero, so that the softmax does not overflow. With a
        # self-loop the target itself is the nearest, at distance zero.
        nearest = np.float32(0) if self.self_loop else distance.min(axis=0)
        logit = nearest - distance
        own = np.full(CHUNK, float(self.self_loop), np.float32)
        return np.stack(
            [self._scored(case, logit, own, 1 / value) for value in temperatures],
            axis=1,
        )

    def _scored(
        self, case: Attended, logit: Single, own: Single, sharpness: float
    ) -> FloatArray:
        if sharpness == 0 and self.absent is not None:
            share = (~self.absent).astype(np.float32)
        else:
            share = logit * np.float32(sharpness)
            np.exp(share, out=share)
        total = share.sum(axis=0) + own
        score = ((share * self.label_score).sum(axis=0) + own) / total
        # Near one-hot attention, squares in single precision would lose the variance.
        precise = score.astype(np.float64)
        squares = (share * share).sum(axis=0) + own * own
        readout = (share * case.message).sum(axis=0) + own * case.own_message
        readout /= total
        columns = (
            score,
            precise * precise,
            squares / (total * total),
            readout,
            readout * readout,
        )
        return np.stack([block_sums(column) for column in columns], axis=-1)
