"""The expansion in 1/T against exact sums over every state of a small model."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from studies.theory.closed_forms import (
    gated_distance,
    gaussian_distance,
    logit_gap,
    ungated_distance,
)
from studies.theory.expansion import (
    expansion,
    gate_advantage,
    gated_logits,
    gaussian_logits,
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
        abs(exact_gated_snr(setting, rho, t) - terms.at(t)) for t in (20, 40, 80, 160)
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


def test_advantage_of_the_gate_grows_as_tau_squared():
    setting = standard_setting()
    advantage = [
        gate_advantage(setting, MissingNoise(0.5, tau)) / tau**2
        for tau in (4.0, 8.0, 16.0, 32.0)
    ]
    change = np.abs(np.diff(advantage))
    assert (np.diff(change) < 0).all()
    assert advantage[-1] == pytest.approx(advantage[-2], rel=0.02)


def test_target_and_neighbour_parts_add_up_to_the_whole_variance():
    setting, noise = Setting((0.6, -0.2), (1.0, 2.0)), MissingNoise(0.3, 0.9)
    whole = gated_distance(setting, noise)
    given_target = gated_logits(setting, noise)
    assert given_target.same_variance < whole.same_variance
    assert given_target.gap == pytest.approx(whole.gap)
    gaussian = gaussian_logits(setting, GaussianNoise(0.8))
    total = gaussian_distance(setting, GaussianNoise(0.8))
    assert gaussian.gap == pytest.approx(total.gap)
    assert gaussian.same_variance < total.same_variance


def test_ungated_moments_given_the_target_are_their_sums_on_a_grid():
    mu, rho, tau = 0.6, 0.35, 0.8
    logits = ungated_logits(Setting((mu,), (1.0,)), MissingNoise(rho, tau))
    grid, step = np.linspace(-8, 8, 2001, retstep=True)
    mass = norm.pdf(grid) * step
    targets = np.append(tau * grid, mu)
    chance = np.append(rho * mass, 1 - rho)

    means, variances = [], []
    for centre in (mu, -mu):
        apart = np.abs(targets[:, None] - tau * grid)
        mean = (1 - rho) * np.abs(targets - centre) + rho * apart @ mass
        square = (1 - rho) * (targets - centre) ** 2 + rho * apart**2 @ mass
        means.append(mean)
        variances.append(chance @ (square - mean**2))
    gap = means[1] - means[0]
    assert logits.gap == pytest.approx(chance @ gap, rel=1e-4)
    assert logits.squared_gap == pytest.approx(chance @ gap**2, rel=1e-4)
    assert [logits.same_variance, logits.other_variance] == pytest.approx(
        variances, rel=1e-4
    )


def test_gaussian_moments_given_the_target_are_their_sums_on_a_grid():
    mu, sigma = 0.6, 0.8
    logits = gaussian_logits(Setting((mu,), (1.0,)), GaussianNoise(sigma))
    grid, step = np.linspace(-8, 8, 2001, retstep=True)
    mass = norm.pdf(grid) * step
    means, variances = [], []
    for centre in (mu, -mu):
        apart = np.abs((mu - centre) + sigma * (grid[:, None] - grid))
        means.append(apart @ mass)
        variances.append(mass @ (apart**2 @ mass - means[-1] ** 2))
    gap = means[1] - means[0]
    assert logits.gap == pytest.approx(mass @ gap, rel=1e-4)
    assert logits.squared_gap == pytest.approx(mass @ gap**2, rel=1e-4)
    assert [logits.same_variance, logits.other_variance] == pytest.approx(
        variances, rel=1e-4
    )


@pytest.mark.parametrize("rho", [0.3, 0.5, 0.8])
def test_the_gate_hurts_just_below_its_boundary_and_helps_just_above(rho):
    setting = standard_setting()
    boundary = weak_logit_boundary(setting, rho)
    assert 0 < boundary < max(setting.signal)
    assert gate_advantage(setting, MissingNoise(rho, 0.9 * boundary)) < 0
    assert gate_advantage(setting, MissingNoise(rho, 1.1 * boundary)) > 0


def test_a_gate_over_fill_in_values_of_zero_changes_nothing():
    assert gate_advantage(standard_setting(), MissingNoise(0.5, 0.0)) == pytest.approx(
        0.0, abs=1e-12
    )


def test_best_temperature_grows_as_the_cube_of_the_noise():
    setting = standard_setting()
    scaled = [
        weak_logit_best_temperature(setting, GaussianNoise(sigma)) / sigma**3
        for sigma in (2.0, 4.0, 8.0, 16.0)
    ]
    change = np.abs(np.diff(scaled))
    assert (np.diff(change) < 0).all()
    assert scaled[-1] == pytest.approx(scaled[-2], rel=0.01)


def test_under_heterophily_no_finite_temperature_is_best():
    setting = standard_setting(a=1.0, b=3.0)
    assert weak_logit_best_temperature(setting, GaussianNoise(1.0)) == math.inf


def test_expansion_refuses_settings_it_was_not_derived_for():
    setting = standard_setting(self_loop=True)
    with pytest.raises(ValueError, match="no self-loop"):
        expansion(setting, gated_logits(setting, MissingNoise(0.5, 1.0)))


def linearised_snr(setting, logits, temperature):
    """SNR of the score cut off after the first order in 1/T, ``ybar + S1 / T``."""
    count = setting.degree.counts[0]
    same = np.arange(count + 1)
    chance = binom.pmf(same, count, setting.same_class_probability)
    label = 2 * same / count - 1
    mixed, centred = 1 - label**2, label - setting.homophily
    slope = logits.gap / 2 * (chance @ mixed)
    among = (1 - label) * logits.same_variance + (1 + label) * logits.other_variance
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
    largest = {}
    for rho in (0.1, 0.3, 0.5, 0.7, 0.9):
        gains = []
        for tau in np.geomspace(0.01, 100, 25):
            noise = MissingNoise(rho, float(tau))
            moments = ungated_distance(setting, noise)
            same = setting.same_class_probability
            size = same * moments.same_mean + (1 - same) * moments.other_mean
            temperature = 10 * size
            gains.append(linearised_gain(setting, noise, temperature))
            gains.append(gate_advantage(setting, noise) / temperature**2)
        largest[rho] = (
            max(gains) / expansion(setting, gated_logits(setting, noise)).limit
        )
    assert largest[0.5] == pytest.approx(0.00034, abs=1e-5)
    assert max(largest.values()) < 0.0012
