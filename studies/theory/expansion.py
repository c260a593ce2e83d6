"""SNR(T) to second order in 1/T: effects of temperature and gate on weak logits.

To first order the SNR depends on the noise through the mean logit gap alone. To second
order it depends on three more numbers, all conditional on the target, because a shift
shared by all logits of a target leaves its attention unchanged.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import binom

from studies.theory.closed_forms import (
    mean_absolute,
    ungated_distance,
    uniform_limit_snr,
)
from studies.theory.model import FloatArray, GaussianNoise, MissingNoise, Setting

# For one coordinate: the mean gap, its variance over targets, and the variance among
# same-class and among other-class neighbours of one target.
_Coordinate = tuple[float, float, float, float]


class LogitMoments(NamedTuple):
    """Logits of one target's neighbours, averaged over targets.

    Args:
        gap: Mean over targets of the gap between same-class and other-class logits.
        squared_gap: Mean over targets of the squared gap.
        variances: Means over targets of the variance among same-class neighbours, and
            among other-class neighbours.
    """

    gap: float
    squared_gap: float
    variances: tuple[float, float]


class Expansion(NamedTuple):
    """``SNR(T) = limit * (1 + first / T + second / T^2) + O(T^-3)``."""

    limit: float
    first: float
    second: float


def gated_logits(setting: Setting, noise: MissingNoise) -> LogitMoments:
    """Logit moments behind the oracle gate."""
    weights, signal = np.asarray(setting.weights), np.abs(np.asarray(setting.signal))
    seen, lost = 1 - noise.rho, noise.rho
    gap = 2 * seen**2 * weights @ signal
    gap_variance = 4 * seen**3 * lost * weights**2 @ signal**2
    # Per target coordinate: seen, a neighbour is at 0 or mu (same), 2 mu or mu (other);
    # lost, at 0 or mu whatever its class.
    variance = seen * lost * weights**2 @ signal**2
    squared_gap = float(gap**2 + gap_variance)
    return LogitMoments(float(gap), squared_gap, (float(variance),) * 2)


def ungated_logits(setting: Setting, noise: MissingNoise) -> LogitMoments:
    """Logit moments without a gate."""
    return _summed(setting, lambda signal: _ungated_coordinate(signal, noise))


def gaussian_logits(setting: Setting, noise: GaussianNoise) -> LogitMoments:
    """Logit moments under Gaussian noise."""
    return _summed(setting, lambda signal: _gaussian_coordinate(signal, noise.sigma))


def expansion(setting: Setting, logits: LogitMoments) -> Expansion:
    """SNR in powers of 1/T, for two classes, a fixed degree and no self-loop."""
    if setting.classes != 2 or len(setting.degree.counts) > 1 or setting.self_loop:
        raise ValueError(
            "the expansion is for two classes, a fixed degree and no self-loop, got "
            f"{setting}"
        )
    count = setting.degree.counts[0]
    same_count = np.arange(count + 1)
    probability = binom.pmf(same_count, count, setting.same_class_probability)
    label_mean = 2 * same_count / count - 1

    def expect(values: FloatArray) -> float:
        return float(probability @ values)

    mixed = 1 - label_mean**2
    same_variance, other_variance = logits.variances
    variance_gap = same_variance - other_variance
    second_score = (
        mixed / 4 * ((1 - 2 / count) * variance_gap - logits.squared_gap * label_mean)
    )
    mean = setting.homophily
    centred = label_mean - mean
    mean_terms = (mean, logits.gap / 2 * expect(mixed), expect(second_score))
    spread = (1 - label_mean) * same_variance + (1 + label_mean) * other_variance
    spread /= 2 * count
    variance_terms = (
        expect(centred**2),
        logits.gap * expect(centred * mixed),
        expect(mixed * spread)
        + logits.squared_gap / 4 * expect(mixed**2)
        - mean_terms[1] ** 2
        + 2 * expect(centred * second_score),
    )
    gain = [term / mean_terms[0] for term in mean_terms[1:]]
    loss = [term / variance_terms[0] for term in variance_terms[1:]]
    return Expansion(
        limit=uniform_limit_snr(setting),
        first=gain[0] - loss[0] / 2,
        second=gain[1] - loss[1] / 2 - gain[0] * loss[0] / 2 + 3 / 8 * loss[0] ** 2,
    )


def weak_logit_best_temperature(setting: Setting, noise: GaussianNoise) -> float:
    """The maximum of the second-order SNR; exact as sigma goes to infinity.

    The gap falls as 1/sigma and the variance among neighbours grows as sigma^2, so the
    best temperature grows as sigma^3, faster than the scale of the logits. Infinite
    where the second-order coefficient is not negative, or under heterophily.
    """
    terms = expansion(setting, gaussian_logits(setting, noise))
    if terms.first <= 0 or terms.second >= 0:
        return math.inf
    return -2 * terms.second / terms.first


def gate_advantage(setting: Setting, noise: MissingNoise) -> float:
    """Coefficient of ``1/T^2`` in the gated SNR less that in the ungated one."""
    gated = expansion(setting, gated_logits(setting, noise))
    ungated = expansion(setting, ungated_logits(setting, noise))
    return gated.limit * (gated.second - ungated.second)


def largest_weak_logit_gain(setting: Setting, rho: float) -> float:
    """The most that the oracle gate gains where logits are weak, over its SNR.

    Weak means that T is ten times the mean size of the ungated logits. The maximum is
    over the fill-in noise, to second order.
    """
    same, gains = setting.same_class_probability, []
    for tau in np.geomspace(0.01, 100, 25):
        noise = MissingNoise(rho, float(tau))
        means = ungated_distance(setting, noise).means
        temperature = 10 * (same * means[0] + (1 - same) * means[1])
        gains.append(gate_advantage(setting, noise) / temperature**2)
    return float(max(gains)) / uniform_limit_snr(setting)


def weak_logit_boundary(setting: Setting, rho: float) -> float:
    """The ``tau*`` below which the oracle gate lowers the SNR, as T grows.

    Zero where the gate helps for every ``tau``.
    """
    scale = float(np.max(np.abs(setting.signal)))

    def advantage(tau: float) -> float:
        return gate_advantage(setting, MissingNoise(rho, tau))

    grid = scale * np.geomspace(1e-3, 1e2, 61)
    signs = np.sign([advantage(float(tau)) for tau in grid])
    changes = np.flatnonzero((signs[:-1] < 0) & (signs[1:] > 0))
    if len(changes) == 0:
        return 0.0
    last = int(changes[-1])
    return float(brentq(advantage, grid[last], grid[last + 1], xtol=1e-10))


def _summed(setting: Setting, moments: Callable[[float], _Coordinate]) -> LogitMoments:
    """Logit moments from independent coordinates; `moments` takes a signal."""
    weights, signal = np.asarray(setting.weights), np.abs(np.asarray(setting.signal))
    per_value = {value: moments(float(value)) for value in np.unique(signal)}
    coordinates = np.array([per_value[value] for value in signal])
    gap, gap_variance, same, other = coordinates.T
    total = weights @ gap
    return LogitMoments(
        float(total),
        float(total**2 + weights**2 @ gap_variance),
        (float(weights**2 @ same), float(weights**2 @ other)),
    )


def _gaussian_coordinate(signal: float, sigma: float) -> _Coordinate:
    shift = 2 * signal / sigma

    def conditional(power: Callable[[float, float], float]) -> float:
        """Mean over the target's noise of a function of both conditional means."""

        def integrand(x: float) -> float:
            return power(_mean_distance(x), _mean_distance(x + shift)) * _density(x)

        value, _ = quad(integrand, -12, 12, epsabs=1e-13, epsrel=1e-10)
        return float(value)

    gap = conditional(lambda same, other: other - same)
    gap_square = conditional(lambda same, other: (other - same) ** 2)
    same_square = conditional(lambda same, other: same**2)
    other_square = conditional(lambda same, other: other**2)
    return (
        sigma * gap,
        sigma**2 * (gap_square - gap**2),
        sigma**2 * (2 - same_square),
        sigma**2 * (2 + shift**2 - other_square),
    )


def _ungated_coordinate(signal: float, noise: MissingNoise) -> _Coordinate:
    seen, lost, tau = 1 - noise.rho, noise.rho, noise.tau
    away = float(mean_absolute(signal, tau))
    gap = 2 * seen**2 * signal
    squared_gap = seen * (2 * seen * signal) ** 2
    squared_gap += lost * seen**2 * _squared_random_gap(signal, tau)
    second_same = 2 * lost * seen * signal**2 + 2 * lost * tau**2
    second_other = second_same + 4 * seen**2 * signal**2
    # The squared conditional means, target coordinate seen, then lost.
    lost_target = lost * _squared_lost_mean(signal, noise)
    mean_same = seen * (lost * away) ** 2 + lost_target
    mean_other = seen * (2 * seen * signal + lost * away) ** 2 + lost_target
    return gap, squared_gap - gap**2, second_same - mean_same, second_other - mean_other


def _squared_random_gap(signal: float, tau: float) -> float:
    """``E(|x + mu| - |x - mu|)^2`` for ``x ~ N(0, tau^2)``.

    The gap that the fill-in value of a lost target coordinate causes by chance. Its
    mean is zero, its square is not.
    """
    if tau == 0:
        return 0.0
    ratio = signal / tau
    inside = math.erf(ratio / math.sqrt(2))
    square_inside = tau**2 * (inside - 2 * ratio * _density(ratio))
    # (|x + mu| - |x - mu|)^2 is 4 x^2 inside [-mu, mu] and 4 mu^2 outside.
    return 4 * square_inside + 4 * signal**2 * (1 - inside)


def _squared_lost_mean(signal: float, noise: MissingNoise) -> float:
    """``E((1 - rho)|x - mu| + rho A_tau(x))^2`` for ``x ~ N(0, tau^2)``."""
    if noise.tau == 0:
        return ((1 - noise.rho) * signal) ** 2
    ratio = signal / noise.tau

    def integrand(x: float) -> float:
        mean = (1 - noise.rho) * abs(x - ratio)
        mean += noise.rho * _mean_distance(x)
        return mean**2 * _density(x)

    bend = min(max(ratio, -12.0), 12.0)
    value, _ = quad(integrand, -12, 12, points=[bend], epsabs=1e-12, epsrel=1e-10)
    return float(noise.tau**2 * value)


def _mean_distance(x: float) -> float:
    """``E|x - z|`` for a standard normal ``z``."""
    return 2 * _density(x) + x * math.erf(x / math.sqrt(2))


def _density(x: float) -> float:
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)
