"""Both theorems in numbers: SNR against temperature, noise and gates."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from studies.theory.bootstrap import Estimate
from studies.theory.closed_forms import one_neighbour_snr, uniform_limit_snr
from studies.theory.expansion import (
    gate_advantage,
    weak_logit_best_temperature,
    weak_logit_boundary,
)
from studies.theory.model import (
    Degree,
    FloatArray,
    GaussianNoise,
    MissingNoise,
    Setting,
)
from studies.theory.neighbourhood import GATE_FIRST, UNGATED
from studies.theory.rows import Row, Table, estimated
from studies.theory.simulate import simulate

Values = Sequence[float]

# T = 1 counts as good where its SNR is this share of the best temperature's.
GOOD_SHARE = 0.95
# The boundary is searched at these multiples of its weak-logit value.
BOUNDARY_MULTIPLES = tuple(float(2**power) for power in np.arange(-2.5, 2.6, 0.5))


def temperature_curves(
    setting: Setting, sigmas: Values, temperatures: Values, *, targets: int, seed: int
) -> tuple[Table, Table]:
    """SNR(T) for several noise levels on the same random numbers, and the best T.

    Temperatures rise in equal steps of their logarithm, and 1 is one of them.
    """
    noises = [GaussianNoise(sigma) for sigma in sigmas]
    simulation = simulate(setting, noises, temperatures, targets=targets, seed=seed)
    limits: Row = {"uniform_limit": uniform_limit_snr(setting)}
    curves: Table = []
    best: Table = []
    for number, noise in enumerate(noises):
        snr = simulation.snr()[number, 0]
        level: Row = {"sigma": noise.sigma}
        for place, temperature in enumerate(temperatures):
            row = level | {"temperature": temperature} | estimated("snr", snr[place])
            curves.append(row | limits | {"one_neighbour": one_neighbour_snr(setting)})
        peak, height = _peak(snr, np.log(temperatures))
        at_one = snr[list(temperatures).index(1.0)]
        share = at_one / height
        best.append(
            level
            | estimated("best_temperature", peak)
            | estimated("best_snr", height)
            | estimated("snr_at_one", at_one)
            | estimated("share_at_one", share)
            | {"one_is_good": bool(share.value >= GOOD_SHARE)}
            | {"weak_logit_best": weak_logit_best_temperature(setting, noise)}
            | limits
        )
    return curves, best


def gate_curves(
    setting: Setting,
    rhos: Values,
    taus: Values,
    temperatures: Values,
    *,
    targets: int,
    seed: int,
) -> Table:
    """SNR without a gate, and with the oracle gate before or after attention."""
    noises = [MissingNoise(rho, tau) for rho in rhos for tau in taus]
    simulation = simulate(
        setting, noises, temperatures, targets=targets, seed=seed, readout=True
    )
    snr, readout = simulation.snr(), simulation.readout_snr()
    gain = _gain(snr)
    return [
        noise._asdict()
        | {"temperature": temperature, "variant": name}
        | estimated("snr", snr[level, variant, place])
        | estimated("readout_snr", readout[level, variant, place])
        | estimated("gate_first_gain", gain[level, place])
        for level, noise in enumerate(noises)
        for place, temperature in enumerate(temperatures)
        for variant, name in enumerate(simulation.variants)
    ]


def gate_boundary(
    setting: Setting, rhos: Values, temperatures: Values, *, targets: int, seed: int
) -> Table:
    """The ``tau*(rho)`` below which the oracle gate lowers the SNR."""
    table: Table = []
    for rho in rhos:
        weak = weak_logit_boundary(setting, rho)
        taus = [weak * multiple for multiple in BOUNDARY_MULTIPLES]
        noises = [MissingNoise(rho, tau) for tau in taus]
        found = simulate(setting, noises, temperatures, targets=targets, seed=seed)
        gain = _gain(found.snr())
        for place, temperature in enumerate(temperatures):
            star = _zero_crossing(gain[:, place], np.asarray(taus))
            row: Row = {"rho": rho, "temperature": temperature}
            row |= estimated("tau_star", star)
            table.append(row | {"tau_star_weak_logit": weak})
    return table


def gain_order(
    setting: Setting,
    noises: list[MissingNoise],
    temperatures: Values,
    *,
    targets: int,
    seed: int,
) -> Table:
    """How fast the gate's gain goes to zero as T grows, and its closed form.

    The gain times T goes to zero: at first order in 1/T both SNRs agree. The gain times
    T^2 goes to a constant that grows as tau^2.
    """
    found = simulate(setting, noises, temperatures, targets=targets, seed=seed)
    gain = _gain(found.snr())
    return [
        noise._asdict()
        | {"temperature": temperature}
        | estimated("gain_times_t", gain[level, place].scaled(temperature))
        | estimated("gain_times_t2", gain[level, place].scaled(temperature**2))
        | {"gain_times_t2_limit": gate_advantage(setting, noise)}
        for level, noise in enumerate(noises)
        for place, temperature in enumerate(temperatures)
    ]


def scenarios(base: Setting) -> Mapping[str, Setting]:
    """The paper's setting, and settings that break one of its assumptions each."""
    mean, few = base.degree.counts[0], Degree.poisson(4)
    return {
        "paper": base,
        "poisson_degree": replace(base, degree=Degree.poisson(mean)),
        "poisson_degree_4": replace(base, degree=few),
        "binomial_degree": replace(base, degree=Degree.binomial(4 * mean, 0.25)),
        "self_loop": replace(base, self_loop=True),
        "poisson_degree_4_self_loop": replace(base, degree=few, self_loop=True),
        "four_classes": replace(base, classes=4),
        "heterophily": replace(base, a=base.b, b=base.a),
    }


def temperature_scenarios(
    base: Setting, sigmas: Values, temperatures: Values, *, targets: int, seed: int
) -> Table:
    """SNR(T) of labels and features under Gaussian noise, for every scenario.

    Under heterophily the SNR is negative where attention is uniform, and only its
    absolute value matters. So the table has both.
    """
    noises = [GaussianNoise(sigma) for sigma in sigmas]
    table: Table = []
    for name, setting in scenarios(base).items():
        found = simulate(
            setting, noises, temperatures, targets=targets, seed=seed, readout=True
        )
        snr, readout = found.snr()[:, 0], found.readout_snr()[:, 0]
        limits: Row = {
            "uniform_limit": uniform_limit_snr(setting),
            "one_neighbour": one_neighbour_snr(setting),
        }
        table += [
            {"scenario": name, "sigma": sigma, "temperature": temperature}
            | estimated("snr", snr[level, place])
            | estimated("size", abs(snr[level, place]))
            | estimated("readout_size", abs(readout[level, place]))
            | limits
            for level, sigma in enumerate(sigmas)
            for place, temperature in enumerate(temperatures)
        ]
    return table


def gate_scenarios(
    base: Setting,
    noise: MissingNoise,
    temperatures: Values,
    *,
    targets: int,
    seed: int,
) -> Table:
    """Absolute SNR with and without the oracle gate, for every scenario."""
    table: Table = []
    for name, setting in scenarios(base).items():
        found = simulate(
            setting, [noise], temperatures, targets=targets, seed=seed, readout=True
        )
        size, readout = abs(found.snr()[0]), abs(found.readout_snr()[0])
        for place, temperature in enumerate(temperatures):
            ungated, gated = size[UNGATED, place], size[GATE_FIRST, place]
            row: Row = {"scenario": name, **noise._asdict(), "temperature": temperature}
            row |= estimated("ungated_size", ungated)
            row |= estimated("gate_first_size", gated)
            row |= estimated("gain", gated - ungated)
            for variant, label in enumerate(found.variants):
                row |= estimated(f"{label}_readout", readout[variant, place])
            table.append(row)
    return table


def _gain(snr: Estimate) -> Estimate:
    """What the gate first adds to the SNR, ``[noises, temperatures]``."""
    return snr[:, GATE_FIRST] - snr[:, UNGATED]


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


def _zero_crossing(gain: Estimate, taus: FloatArray) -> Estimate:
    """The largest ``tau`` where the gain becomes positive, linear in log tau.

    Zero if the gain never changes from negative to positive, infinite if it is negative
    at the largest ``tau``.
    """

    def root(curve: FloatArray) -> float:
        if curve[-1] < 0:
            return float("inf")
        rising = np.flatnonzero((curve[:-1] < 0) & (curve[1:] >= 0))
        if len(rising) == 0:
            return 0.0
        last = rising[-1]
        share = curve[last] / (curve[last] - curve[last + 1])
        step = np.log(taus[last + 1] / taus[last])
        return float(taus[last] * np.exp(share * step))

    roots = np.array([root(curve) for curve in gain.replicates])
    return Estimate(np.asarray(root(gain.value)), roots)
