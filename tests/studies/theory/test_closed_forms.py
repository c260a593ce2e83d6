"""Closed forms against integrals and sums that do not use them."""

import itertools
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from studies.theory.closed_forms import (
    gated_distance,
    gated_variance_bound,
    gaussian_distance,
    mean_absolute,
    one_neighbour_snr,
    ungated_distance,
    ungated_variance_bound,
    uniform_limit_snr,
)
from studies.theory.model import Degree, GaussianNoise, MissingNoise, Setting

NOISES = [MissingNoise(rho, tau) for rho in (0.1, 0.5, 0.9) for tau in (0.2, 1.0, 5.0)]


def absolute_moment(shift, scale, power):
    """E|shift + scale z|^power by quadrature."""
    bend = -shift / scale
    value, _ = quad(
        lambda z: abs(shift + scale * z) ** power * norm.pdf(z),
        -14,
        14,
        points=[float(np.clip(bend, -14, 14))],
        epsabs=1e-12,
    )
    return value


def mixture_moments(branches):
    """Mean and variance of |shift + scale z| over (probability, shift, scale)."""
    moments = [0.0, 0.0]
    for probability, shift, scale in branches:
        for power in (1, 2):
            moments[power - 1] += probability * (
                abs(shift) ** power
                if scale == 0
                else absolute_moment(shift, scale, power)
            )
    return moments[0], moments[1] - moments[0] ** 2


def missing_branches(own, other, noise, gated):
    """How a target and a neighbour with the given signals can be observed."""
    rho, tau = noise.rho, noise.tau
    for own_seen, other_seen in itertools.product((True, False), repeat=2):
        probability = (1 - rho if own_seen else rho) * (1 - rho if other_seen else rho)
        shift = own * own_seen - other * other_seen
        lost = 0 if gated else (not own_seen) + (not other_seen)
        yield probability, shift, tau * lost**0.5


@pytest.mark.parametrize("scale", [0.1, 1.0, 7.0])
@pytest.mark.parametrize("shift", [0.0, 0.3, -2.0, 10.0])
def test_mean_distance_to_a_normal_is_its_integral(shift, scale):
    assert mean_absolute(shift, scale) == pytest.approx(
        absolute_moment(shift, scale, 1), rel=1e-8
    )


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_missing_coordinates_give_the_mixture_moments(noise, gated):
    setting = Setting(signal=(0.8, -0.3), weights=(1.5, 0.4))
    closed = (gated_distance if gated else ungated_distance)(setting, noise)
    weights = np.asarray(setting.weights)
    for other, sign in enumerate((1, -1)):
        parts = [
            mixture_moments(missing_branches(mu, sign * mu, noise, gated))
            for mu in setting.signal
        ]
        mean, variance = np.transpose(parts)
        assert closed.means[other] == pytest.approx(weights @ mean, rel=1e-7)
        found = closed.variances[other]
        assert found == pytest.approx(weights**2 @ variance, rel=1e-7)


@pytest.mark.parametrize("sigma", [0.1, 1.0, 6.0])
def test_gaussian_noise_gives_the_folded_normal_moments(sigma):
    setting = Setting(signal=(0.8, -0.3), weights=(1.5, 0.4))
    closed = gaussian_distance(setting, GaussianNoise(sigma))
    same = mixture_moments([(1.0, 0.0, sigma * 2**0.5)])
    other = [mixture_moments([(1.0, 2 * mu, sigma * 2**0.5)]) for mu in setting.signal]
    far = 1.5 * other[0][0] + 0.4 * other[1][0]
    assert closed.means == pytest.approx((1.9 * same[0], far))
    far = 1.5**2 * other[0][1] + 0.4**2 * other[1][1]
    assert closed.variances == pytest.approx(((1.5**2 + 0.4**2) * same[1], far))


positive = st.floats(0.01, 10)


@settings(max_examples=200, deadline=None)
@given(
    rho=st.floats(0, 1),
    tau=st.floats(0, 50),
    coordinates=st.lists(st.tuples(st.floats(-5, 5), positive), min_size=1, max_size=4),
)
def test_variances_never_cross_the_papers_bounds(rho, tau, coordinates):
    signal, weights = zip(*coordinates, strict=True)
    setting, noise = Setting(signal=signal, weights=weights), MissingNoise(rho, tau)
    gated, ungated = gated_distance(setting, noise), ungated_distance(setting, noise)
    upper = gated_variance_bound(setting)
    lower = ungated_variance_bound(setting, noise)
    slack = 1e-9 * (1 + ungated.means[1] ** 2)
    for variance in gated.variances:
        assert -slack <= variance <= upper + slack
    for variance in ungated.variances:
        assert variance >= lower - slack


def snr_of(pairs):
    """SNR of a score from (probability, value) pairs of one class, mirrored."""
    probability, value = np.array(list(pairs)).T
    assert probability.sum() == pytest.approx(1)
    mean = probability @ value
    return mean * np.sqrt(2 / (probability @ value**2 - mean**2))


@pytest.mark.parametrize("self_loop", [False, True])
@pytest.mark.parametrize(
    "degree",
    [Degree.fixed(5), Degree.poisson(3.0), Degree.binomial(9, 0.4)],
    ids=["fixed", "poisson", "binomial"],
)
@pytest.mark.parametrize(("a", "b"), [(3.0, 1.0), (1.0, 3.0), (1.1, 1.0)])
def test_uniform_attention_has_the_snr_of_the_label_mean(a, b, degree, self_loop):
    setting = Setting((1.0,), (1.0,), a, b, degree, self_loop=self_loop)
    same = a / (a + b)

    def outcomes():
        for count, weight in zip(degree.counts, degree.probabilities, strict=True):
            for agree in range(count + 1):
                chance = (
                    comb(count, agree) * same**agree * (1 - same) ** (count - agree)
                )
                total = 2 * agree - count + self_loop
                yield weight * chance, total / (count + self_loop)

    assert uniform_limit_snr(setting) == pytest.approx(snr_of(outcomes()), rel=1e-8)


def test_uniform_attention_among_four_classes_is_the_multinomials():
    setting = Setting((1.0,) * 4, (1.0,) * 4, degree=Degree.fixed(3), classes=4)
    chance = np.array([3.0, 1.0, 1.0, 1.0]) / 6
    score = np.array([1.0, -1.0, 0.0, 0.0])
    pairs = [
        (np.prod(chance[list(labels)]), score[list(labels)].mean())
        for labels in itertools.product(range(4), repeat=3)
    ]
    assert uniform_limit_snr(setting) == pytest.approx(snr_of(pairs))
    single = [(c, s) for c, s in zip(chance, score, strict=True)]
    assert one_neighbour_snr(setting) == pytest.approx(snr_of(single))
