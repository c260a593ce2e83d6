"""SNR(T) by simulation, with and without gates.

Only targets of the first class are drawn. Exchanging the first two classes mirrors
every distribution here, because both noises are symmetric. So the score of the second
class is that of the first with the sign flipped: SNR = sqrt(2) mean / std.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from studies.theory.bootstrap import Estimate, resampled_means
from studies.theory.model import FloatArray, MissingNoise, Noises, Setting
from studies.theory.neighbourhood import (
    BLOCK,
    CHUNK,
    GAUSSIAN_VARIANTS,
    MISSING_VARIANTS,
    Attended,
    Chunk,
    Mask,
    Single,
    block_sums,
    draw_degrees,
    draw_labels,
    run_chunks,
)

# Above this the variance is only rounding error, and the SNR is given as infinite.
LARGEST_SNR = 1e6

SCORE, SCORE_SQUARED, CONCENTRATION, READOUT, READOUT_SQUARED = range(5)


@dataclass(frozen=True)
class Simulation:
    """Means over targets, ``[noises, variants, temperatures, statistics]``.

    The score is ``R = sum alpha y``, the concentration ``sum alpha^2``, and the readout
    the layer's output along the line between the two class means.
    """

    variants: tuple[str, ...]
    means: Estimate

    def snr(self) -> Estimate:
        """SNR of the label score, ``[noises, variants, temperatures]``."""
        return self._ratio(SCORE, SCORE_SQUARED)

    def readout_snr(self) -> Estimate:
        """SNR of the layer's output along the line between class means."""
        return self._ratio(READOUT, READOUT_SQUARED)

    def mean_score(self) -> Estimate:
        """``E[R | y_i = +1]``."""
        return self.means[..., SCORE]

    def variance(self) -> Estimate:
        """``Var(R | y_i = +1)``."""
        return self.means[..., SCORE_SQUARED] - self.mean_score().square()

    def concentration(self) -> Estimate:
        """``E[sum_j alpha_j^2]``."""
        return self.means[..., CONCENTRATION]

    def _ratio(self, first: int, second: int) -> Estimate:
        def ratio(means: FloatArray) -> FloatArray:
            variance = np.maximum(means[..., second] - means[..., first] ** 2, 0.0)
            with np.errstate(divide="ignore"):
                size = means[..., first] * np.sqrt(2 / variance)
            return np.where(np.abs(size) > LARGEST_SNR, np.copysign(np.inf, size), size)

        return Estimate(ratio(self.means.value), ratio(self.means.replicates))


def simulate(
    setting: Setting,
    noises: Noises,
    temperatures: Sequence[float],
    *,
    targets: int,
    seed: int,
    readout: bool = False,
    threads: int = 2,
) -> Simulation:
    """Draw neighbourhoods once and score them under every noise and temperature.

    All noises (of one kind), variants and temperatures (`inf` is uniform attention) see
    the same labels, masks and standard normals. The number of targets is rounded up to
    whole chunks of 2000. The result depends on the seed, not on the number of threads.
    The readout is computed only if it is asked for.
    """
    label_scores = np.zeros(setting.classes, np.float32)
    label_scores[:2] = 1, -1

    def chunk(random: np.random.Generator) -> FloatArray:
        present = draw_degrees(setting, random)
        labels = draw_labels(setting, random, len(present))
        drawn = Chunk(setting, labels, random, masks=masks, messages=readout)
        scorer = _Scorer(present, label_scores[labels], setting.self_loop)
        sums = [
            [scorer.sums(case, temperatures) for case in drawn.attended(noise)]
            for noise in noises
        ]
        return np.stack([np.stack(variants, axis=1) for variants in sums], axis=1)

    masks = isinstance(noises[0], MissingNoise)
    sums = run_chunks(chunk, targets, seed, threads)
    variants = MISSING_VARIANTS if masks else GAUSSIAN_VARIANTS
    return Simulation(variants, resampled_means(sums, BLOCK, seed))


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
        scored = [self._scored(case, logit, own, 1 / value) for value in temperatures]
        return np.stack(scored, axis=1)

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
        return block_sums(
            score,
            precise * precise,
            squares / (total * total),
            readout,
            readout * readout,
        )
