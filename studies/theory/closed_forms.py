"""Closed forms of both theorems; docs/theory.md derives them.

Arrays over coordinates follow ``Setting.signal``. "Same" and "other" mean a neighbour
of the target's class and of the other class. The distances are for two classes.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import erf

from studies.theory.model import FloatArray, GaussianNoise, MissingNoise, Setting


class PairMoments(NamedTuple):
    """Means and variances of the distance to a same-class and an other-class node."""

    means: tuple[float, float]
    variances: tuple[float, float]

    @property
    def gap(self) -> float:
        """Class-separation logit gap."""
        return self.means[1] - self.means[0]


def mean_absolute(shift: FloatArray | float, scale: float) -> FloatArray:
    """``A_tau(t) = E|t - xi|`` for ``xi ~ N(0, tau^2)``."""
    shift = np.abs(np.asarray(shift, dtype=np.float64))
    if scale == 0:
        return shift
    # Above 40 the density is 0 and the error function 1 in double precision.
    ratio = np.minimum(shift, 40 * scale) / scale
    return np.asarray(
        scale * np.sqrt(2 / np.pi) * np.exp(-(ratio**2) / 2)
        + shift * erf(ratio / np.sqrt(2))
    )


def mean_absolute_difference(scale: float) -> float:
    """``B_tau = E|xi_1 - xi_2|`` for two independent ``N(0, tau^2)``."""
    return float(2 * scale / np.sqrt(np.pi))


def uniform_limit_snr(setting: Setting) -> float:
    """SNR as ``T`` goes to infinity, at every noise level.

    Attention becomes uniform, so only the labels count. Random degrees enter through
    ``E[1/K]``; a self-loop adds the target's own label.
    """
    mean, variance = _label_moments(setting)
    counts = np.asarray(setting.degree.counts, dtype=np.float64)
    if not setting.self_loop:
        return float(mean * np.sqrt(2 / (variance * setting.degree.expect(1 / counts))))
    own = 1 / (counts + 1)
    own_mean = setting.degree.expect(own)
    own_variance = setting.degree.expect(own**2) - own_mean**2
    total_mean = mean + (1 - mean) * own_mean
    total_variance = (
        variance * setting.degree.expect(counts * own**2)
        + (1 - mean) ** 2 * own_variance
    )
    return float(total_mean * np.sqrt(2 / total_variance))


def one_neighbour_snr(setting: Setting) -> float:
    """SNR of attention on one neighbour whatever its label: the limit of high noise."""
    mean, variance = _label_moments(setting)
    return float(mean * np.sqrt(2 / variance))


def gaussian_distance(setting: Setting, noise: GaussianNoise) -> PairMoments:
    """Moments of the weighted distance under Gaussian noise."""
    weights, signal = _arrays(setting)
    scale = noise.sigma * np.sqrt(2)
    same = mean_absolute(np.zeros_like(signal), scale)
    other = mean_absolute(2 * signal, scale)
    return PairMoments(
        (float(weights @ same), float(weights @ other)),
        (
            float(weights**2 @ (scale**2 - same**2)),
            float(weights**2 @ (4 * signal**2 + scale**2 - other**2)),
        ),
    )


def ungated_distance(setting: Setting, noise: MissingNoise) -> PairMoments:
    """Moments of the weighted distance under missing coordinates, without a gate."""
    weights, signal = _arrays(setting)
    rho, tau = noise.rho, noise.tau
    one_lost = 2 * rho * (1 - rho)
    both_seen = (1 - rho) ** 2
    lost = one_lost * mean_absolute(signal, tau)
    lost += rho**2 * mean_absolute_difference(tau)
    lost_square = one_lost * signal**2 + 2 * rho * tau**2
    other = lost + 2 * both_seen * signal
    return PairMoments(
        (float(weights @ lost), float(weights @ other)),
        (
            float(weights**2 @ (lost_square - lost**2)),
            float(weights**2 @ (4 * both_seen * signal**2 + lost_square - other**2)),
        ),
    )


def gated_distance(setting: Setting, noise: MissingNoise) -> PairMoments:
    """Moments of the weighted distance behind the oracle gate, whatever ``tau`` is."""
    weights, signal = _arrays(setting)
    rho = noise.rho
    one_lost = 2 * rho * (1 - rho)
    size, square = float(weights @ signal), float(weights**2 @ signal**2)
    return PairMoments(
        (one_lost * size, 2 * (1 - rho) * size),
        (one_lost * (1 - one_lost) * square, one_lost * square),
    )


def logit_gap(setting: Setting, rho: float) -> float:
    """``2 (1 - rho)^2 sum w |mu|``, with and without the oracle gate."""
    weights, signal = _arrays(setting)
    return float(2 * (1 - rho) ** 2 * weights @ signal)


def gated_variance_bound(setting: Setting) -> float:
    """The paper's upper bound ``4 sum w^2 mu^2`` on the gated logit's variance."""
    weights, signal = _arrays(setting)
    return float(4 * weights**2 @ signal**2)


def ungated_variance_bound(setting: Setting, noise: MissingNoise) -> float:
    """The paper's lower bound on the ungated logit's variance."""
    weights, _ = _arrays(setting)
    factor = 2 * noise.rho**2 * (1 - 2 / np.pi) * noise.tau**2
    return float(factor * np.sum(weights**2))


def _label_moments(setting: Setting) -> tuple[float, float]:
    """Mean and variance of a neighbour's label: 1 same, -1 one other class, or 0."""
    same = setting.same_class_probability
    other = (1 - same) / (setting.classes - 1)
    return same - other, same + other - (same - other) ** 2


def _arrays(setting: Setting) -> tuple[FloatArray, FloatArray]:
    """Weights and absolute signal; distances do not depend on the signal's sign."""
    if setting.classes != 2:
        raise ValueError(
            f"distances are in closed form for two classes, got {setting.classes}"
        )
    return np.asarray(setting.weights), np.abs(np.asarray(setting.signal))
