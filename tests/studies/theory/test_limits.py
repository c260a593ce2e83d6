"""Limits are approached step by step, and their order matters."""

from dataclasses import replace

import numpy as np
import pytest

from studies.theory.closed_forms import one_neighbour_snr, uniform_limit_snr
from studies.theory.expansion import weak_logit_best_temperature
from studies.theory.model import GaussianNoise, standard_setting
from studies.theory.simulate import simulate
from tempergat.stats import holm

SETTING = standard_setting(coordinates=4, neighbours=6)
SILENT = replace(SETTING, signal=(0.0,) * 4)
UNIFORM, SINGLE = uniform_limit_snr(SETTING), one_neighbour_snr(SETTING)


def falling(values):
    return bool((np.diff(values) < 0).all())


@pytest.mark.parametrize("sigma", [0.2, 1.0, 5.0])
def test_snr_approaches_uniform_attention_as_temperature_grows(sigma):
    # Beyond the best temperature; on its near side the SNR rises first.
    noise = GaussianNoise(sigma)
    best = weak_logit_best_temperature(SETTING, noise)
    start = max(16 * sigma, 2 * best if np.isfinite(best) else 0.0)
    temperatures = [start * 2.0**n for n in range(8)] + [np.inf]
    snr = simulate(SETTING, [noise], temperatures, targets=100_000, seed=1).snr()[0, 0]
    # The common sample has a limit of its own, near the closed form.
    assert falling(np.abs(snr.value[:-1] - snr.value[-1]))
    assert snr[-1].p_values(UNIFORM) > 0.001


def test_snr_at_one_approaches_a_single_neighbour_as_noise_grows():
    sigmas = [1.0, 2.0, 4.0, 8.0, 16.0]
    noises = [GaussianNoise(sigma) for sigma in sigmas]
    snr = simulate(SETTING, noises, [1.0], targets=400_000, seed=2).snr()[:, 0, 0]
    gap = snr.value - SINGLE
    assert falling(gap)
    assert (gap > 0).all()
    # The chance that the two nearest neighbours are closer than T falls as 1/sigma.
    assert gap[-1] * sigmas[-1] == pytest.approx(gap[-2] * sigmas[-2], rel=0.35)


def test_mean_score_at_one_approaches_homophily_as_noise_grows():
    noises = [GaussianNoise(sigma) for sigma in (0.5, 1.0, 2.0, 4.0, 8.0)]
    simulation = simulate(SETTING, noises, [1.0], targets=400_000, seed=3)
    assert falling(np.abs(simulation.mean_score().value[:, 0, 0] - SETTING.homophily))


def test_single_neighbour_is_reached_as_t_vanishes_only_after_the_noise_is_infinite():
    temperatures = [1.0, 0.3, 0.1, 0.03, 0.001]
    after = simulate(
        SILENT, [GaussianNoise(1.0)], temperatures, targets=100_000, seed=4
    ).snr()[0, 0]
    assert falling(after.value)
    assert after[-1].p_values(SINGLE) > 0.001

    before = simulate(
        SETTING, [GaussianNoise(0.5)], temperatures, targets=100_000, seed=4
    ).snr()[0, 0]
    low, _ = before[-1].interval(0.999)
    assert low > 1.5 * SINGLE


def test_without_signal_the_snr_is_set_by_concentration_alone():
    simulation = simulate(
        SILENT, [GaussianNoise(1.0)], [0.1, 0.5, 2.0, 8.0], targets=100_000, seed=5
    )
    product = simulation.snr() * simulation.concentration().root()
    assert min(holm(product.p_values(SINGLE).ravel())) > 0.001


def test_a_self_loop_reverses_the_high_noise_limit():
    looped = replace(SETTING, self_loop=True)
    snr = simulate(
        looped, [GaussianNoise(4.0)], [1.0, 64.0, np.inf], targets=20_000, seed=6
    ).snr()[0, 0]
    assert snr.value[0] > 10 * snr.value[1] > 10 * snr.value[2]


def test_an_snr_that_rounding_hides_is_infinite_with_its_interval():
    looped = replace(SETTING, self_loop=True)
    snr = simulate(
        looped, [GaussianNoise(4.0)], [1e-4, np.inf], targets=20_000, seed=6
    ).snr()[0, 0]
    low, high = snr.interval()
    assert (snr.value[0], low[0], high[0]) == (np.inf,) * 3
    assert np.isfinite([snr.value[1], low[1], high[1]]).all()


def test_under_heterophily_sharper_attention_loses_size():
    mixed = replace(SETTING, a=1.0, b=3.0)
    snr = simulate(
        mixed, [GaussianNoise(1.0)], [np.inf, 64.0, 16.0, 4.0], targets=20_000, seed=7
    ).snr()[0, 0]
    assert falling(np.abs(snr.value))
    assert (snr.value < 0).all()


def test_under_heterophily_clean_features_make_sharp_attention_the_better():
    mixed = standard_setting(a=1.0, b=3.0)
    snr = simulate(
        mixed, [GaussianNoise(0.2)], [0.5, np.inf], targets=20_000, seed=8
    ).snr()[0, 0]
    # It finds the few neighbours of the same class, so the sign is turned.
    assert snr.value[0] > 1.5 * -snr.value[1] > 0
