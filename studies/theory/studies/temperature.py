"""Theorem 1 in numbers: SNR against temperature under Gaussian noise."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from studies.theory.closed_forms import one_neighbour_snr, uniform_limit_snr
from studies.theory.expansion import weak_logit_best_temperature
from studies.theory.model import FloatArray, GaussianNoise, Setting
from studies.theory.rows import Table, estimated
from studies.theory.simulate import simulate
from tempergat.stats import Estimate

# T = 1 counts as good where its SNR is this share of the best temperature's.
GOOD_SHARE = 0.95


@dataclass(frozen=True)
class TemperatureStudy:
    """SNR at each noise level and temperature, and the best temperature of each."""

    curves: Table
    best: Table


def temperature_study(
    setting: Setting,
    sigmas: Sequence[float],
    temperatures: Sequence[float],
    *,
    targets: int,
    seed: int,
    threads: int = 2,
) -> TemperatureStudy:
    """SNR(T) for several noise levels, on the same random numbers.

    Args:
        setting: The neighbourhood before noise.
        sigmas: Noise levels.
        temperatures: Temperatures in rising order; 1 must be one of them.
        targets: Number of targets.
        seed: Seed of the random numbers.
        threads: Worker threads.
    """
    noises = [GaussianNoise(sigma) for sigma in sigmas]
    simulation = simulate(
        setting, noises, temperatures, targets=targets, seed=seed, threads=threads
    )
    snr = simulation.snr()[:, 0]
    one = list(temperatures).index(1.0)
    uniform = uniform_limit_snr(setting)
    curves: Table = []
    best: Table = []
    for level, sigma in enumerate(sigmas):
        curves += [
            {"sigma": sigma, "temperature": temperature}
            | estimated("snr", snr[level, place])
            | {"uniform_limit": uniform, "one_neighbour": one_neighbour_snr(setting)}
            for place, temperature in enumerate(temperatures)
        ]
        place, height = _peak(snr[level], np.log(temperatures))
        share = snr[level, one] / height
        best.append(
            {"sigma": sigma}
            | estimated("best_temperature", place)
            | estimated("best_snr", height)
            | estimated("snr_at_one", snr[level, one])
            | estimated("share_at_one", share)
            | {
                "one_is_good": bool(share.value >= GOOD_SHARE),
                "weak_logit_best": weak_logit_best_temperature(setting, noises[level]),
                "uniform_limit": uniform,
            }
        )
    return TemperatureStudy(curves, best)


def _peak(curve: Estimate, positions: FloatArray) -> tuple[Estimate, Estimate]:
    """Position and height of a curve's maximum, by a parabola through three points."""
    place, height = _parabola(curve.value[None], positions)
    places, heights = _parabola(curve.replicates, positions)
    return (
        Estimate(np.exp(place[0]), np.exp(places)),
        Estimate(np.asarray(height[0]), heights),
    )


def _parabola(
    curves: FloatArray, positions: FloatArray
) -> tuple[FloatArray, FloatArray]:
    step = positions[1] - positions[0]
    top = np.argmax(curves, axis=1)
    middle = np.clip(top, 1, curves.shape[1] - 2)
    row = np.arange(len(curves))
    left, centre, right = (curves[row, middle + shift] for shift in (-1, 0, 1))
    bend = left - 2 * centre + right
    shift = np.where(bend < 0, (left - right) / (2 * np.minimum(bend, -1e-300)), 0.0)
    inside = (top == middle) & (np.abs(shift) <= 1)
    place = np.where(inside, positions[middle] + shift * step, positions[top])
    height = np.where(inside, centre - (left - right) * shift / 4, curves[row, top])
    return place, height
