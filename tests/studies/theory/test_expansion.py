"""The expansion in 1/T against exact sums over every state of a small model."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from studies.theory.closed_forms import logit_gap, ungated_distance
from studies.theory.expansion import (
    expansion,
    gate_advantage,
    gated_logits,
    largest_weak_logit_gain,
    ungated_logits,
    weak_logit_best_temperature,
    weak_logit_boundary,
)
from studies.theory.model import (
    Degree,
    GaussianNoise,
    MissingNoise,
    Setting,
    standard_setting,
)


def exact_gated_snr(setting, rho, temperature):
    """SNR behind the oracle gate, one coordinate, by listing every state."""
    (mu,), (weight,) = setting.signal, setting.weights
    count, same = setting.degree.counts[0], setting.same_class_probability
    neighbour = [
        (chance * seen_chance, label, label * mu * seen)
        for chance, label in ((same, 1), (1 - same, -1))
        for seen_chance, seen in ((1 - rho, 1), (rho, 0))
    ]
    first = second = 0.0
    for own_chance, own in ((1 - rho, mu), (rho, 0.0)):
        for states in itertools.product(neighbour, repeat=count):
            probability = own_chance * math.prod(state[0] for state in states)
            logits = np.array([-weight * abs(own - state[2]) for state in states])
            share = np.exp(logits / temperature)
            score = share @ [state[1] for state in states] / share.sum()
            first += probability * score
            second += probability * score**2
    return first * math.sqrt(2 / (second - first**2))


@pytest.mark.parametrize("b", [1.0, 7.0])
@pytest.mark.parametrize("rho", [0.2, 0.6])
def test_remainder_of_the_expansion_is_of_third_order(rho, b):
    setting = Setting((0.7,), (1.3,), a=3.0, b=b, degree=Degree.fixed(4))
    terms = expansion(setting, gated_logits(setting, MissingNoise(rho, 1.0)))
    error = [
        abs(
            exact_gated_snr(setting, rho, t)
            - terms.limit * (1 + terms.first / t + terms.second / t**2)
        )
        for t in (20, 40, 80, 160)
    ]
    order = np.log2(np.array(error[:-1]) / error[1:])
    assert order == pytest.approx(3.0, abs=0.25)


def test_first_order_is_the_slope_in_closed_form():
    setting = standard_setting(a=2.5, neighbours=9)
    noise = MissingNoise(0.4, 0.7)
    terms = expansion(setting, ungated_logits(setting, noise))
    count, mean = setting.degree.counts[0], setting.homophily
    gap = logit_gap(setting, 0.4)
    first = (1 - 1 / count) * gap * (1 + mean**2) / (2 * mean)
    assert terms.first == pytest.approx(first)


@pytest.mark.parametrize("tau", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("rho", [0.1, 0.5, 0.9])
def test_gated_and_ungated_snr_agree_at_first_order(rho, tau):
    setting, noise = standard_setting(), MissingNoise(rho, tau)
    gated = expansion(setting, gated_logits(setting, noise))
    ungated = expansion(setting, ungated_logits(setting, noise))
    assert gated.first == pytest.approx(ungated.first, rel=1e-9)
    assert gated.limit == ungated.limit


def test_best_temperature_grows_as_the_cube_of_the_noise():
    setting = standard_setting()
    scaled = [
        weak_logit_best_temperature(setting, GaussianNoise(sigma)) / sigma**3
        for sigma in (2.0, 4.0, 8.0, 16.0)
    ]
    change = np.abs(np.diff(scaled))
    assert (np.diff(change) < 0).all()
    assert scaled[-1] == pytest.approx(scaled[-2], rel=0.01)


def linearised_snr(setting, logits, temperature):
    """SNR of the score cut off after the first order in 1/T, ``ybar + S1 / T``."""
    count = setting.degree.counts[0]
    same = np.arange(count + 1)
    chance = binom.pmf(same, count, setting.same_class_probability)
    label = 2 * same / count - 1
    mixed, centred = 1 - label**2, label - setting.homophily
    slope = logits.gap / 2 * (chance @ mixed)
    same_variance, other_variance = logits.variances
    among = (1 - label) * same_variance + (1 + label) * other_variance
    slope_variance = chance @ (mixed * among) / (2 * count)
    slope_variance += logits.squared_gap / 4 * (chance @ mixed**2) - slope**2
    variance = chance @ centred**2 + slope_variance / temperature**2
    variance += logits.gap * (chance @ (centred * mixed)) / temperature
    mean = setting.homophily + slope / temperature
    return math.sqrt(2 / variance) * mean


def linearised_gain(setting, noise, temperature):
    gated, ungated = gated_logits(setting, noise), ungated_logits(setting, noise)
    with_gate = linearised_snr(setting, gated, temperature)
    return with_gate - linearised_snr(setting, ungated, temperature)


def test_the_gate_raises_the_snr_of_the_linearised_score_above_a_small_tau():
    setting = standard_setting()
    assert weak_logit_boundary(setting, 0.5) == pytest.approx(0.030, abs=5e-4)
    for temperature in (4, 16, 64):
        below, above = (
            linearised_gain(setting, MissingNoise(0.5, tau), temperature)
            for tau in (0.02, 0.04)
        )
        assert below < 0 < above
    noise = MissingNoise(0.5, 4.0)
    assert linearised_gain(setting, noise, 16) == pytest.approx(0.51, abs=0.005)
    assert gate_advantage(setting, noise) / 16**2 == pytest.approx(0.45, abs=0.005)


def test_where_logits_are_weak_the_gate_gains_next_to_nothing():
    setting = standard_setting()
    shares = {rho: largest_weak_logit_gain(setting, rho) for rho in (0.1, 0.5, 0.9)}
    assert 0 < max(shares.values()) < 0.0012
    # The linearised score of the paper gains no more.
    for tau in np.geomspace(0.01, 100, 9):
        noise = MissingNoise(0.5, float(tau))
        same, other = ungated_distance(setting, noise).means
        share = setting.same_class_probability
        weak = 10 * (share * same + (1 - share) * other)
        gain = linearised_gain(setting, noise, weak)
        assert gain / expansion(setting, gated_logits(setting, noise)).limit < 0.0012
