"""Theorem 2 in numbers: gated and ungated SNR under missing coordinates."""

from collections.abc import Sequence

import numpy as np

from studies.theory.expansion import gate_advantage, weak_logit_boundary
from studies.theory.model import FloatArray, MissingNoise, Setting
from studies.theory.neighbourhood import GATE_FIRST, UNGATED
from studies.theory.rows import Row, Table, estimated
from studies.theory.simulate import simulate
from tempergat.stats import Estimate

# The boundary is searched at these multiples of its weak-logit value.
BOUNDARY_MULTIPLES = tuple(float(2**power) for power in np.arange(-2.5, 2.6, 0.5))


def gate_curves(
    setting: Setting,
    rhos: Sequence[float],
    taus: Sequence[float],
    temperatures: Sequence[float],
    *,
    targets: int,
    seed: int,
    threads: int = 2,
) -> Table:
    """SNR without a gate, and with the oracle gate before or after attention.

    Args:
        setting: The neighbourhood before noise.
        rhos: Probabilities of a missing coordinate.
        taus: Noise levels of the fill-in values.
        temperatures: Softmax temperatures.
        targets: Number of targets.
        seed: Seed of the random numbers, the same for every ``rho``.
        threads: Worker threads.
    """
    noises = [MissingNoise(rho, tau) for rho in rhos for tau in taus]
    simulation = simulate(
        setting,
        noises,
        temperatures,
        targets=targets,
        seed=seed,
        readout=True,
        threads=threads,
    )
    snr, readout = simulation.snr(), simulation.readout_snr()
    table: Table = []
    for level, noise in enumerate(noises):
        for place, temperature in enumerate(temperatures):
            gain = snr[level, GATE_FIRST, place] - snr[level, UNGATED, place]
            for variant, name in enumerate(simulation.variants):
                row: Row = {
                    "rho": noise.rho,
                    "tau": noise.tau,
                    "temperature": temperature,
                    "variant": name,
                }
                row |= estimated("snr", snr[level, variant, place])
                row |= estimated("readout_snr", readout[level, variant, place])
                row |= estimated("gate_first_gain", gain)
                table.append(row)
    return table


def gate_boundary(
    setting: Setting,
    rhos: Sequence[float],
    temperatures: Sequence[float],
    *,
    targets: int,
    seed: int,
    threads: int = 2,
) -> Table:
    """The ``tau*(rho)`` below which the oracle gate lowers the SNR.

    Args:
        setting: The neighbourhood before noise.
        rhos: Probabilities of a missing coordinate.
        temperatures: Softmax temperatures.
        targets: Number of targets.
        seed: Seed of the random numbers, the same for every ``rho``.
        threads: Worker threads.
    """
    table: Table = []
    for rho in rhos:
        weak = weak_logit_boundary(setting, rho)
        taus = [weak * multiple for multiple in BOUNDARY_MULTIPLES]
        simulation = simulate(
            setting,
            [MissingNoise(rho, tau) for tau in taus],
            temperatures,
            targets=targets,
            seed=seed,
            threads=threads,
        )
        snr = simulation.snr()
        for place, temperature in enumerate(temperatures):
            gain = snr[:, GATE_FIRST, place] - snr[:, UNGATED, place]
            row: Row = {"rho": rho, "temperature": temperature}
            row |= estimated("tau_star", _zero_crossing(gain, np.asarray(taus)))
            table.append(row | {"tau_star_weak_logit": weak})
    return table


def gain_order(
    setting: Setting,
    noises: Sequence[MissingNoise],
    temperatures: Sequence[float],
    *,
    targets: int,
    seed: int,
    threads: int = 2,
) -> Table:
    """How fast the gate's gain goes to zero as T grows, and its closed form.

    The gain times T goes to zero: at first order in 1/T both SNRs agree. The gain times
    T^2 goes to a constant that grows as tau^2.
    """
    simulation = simulate(
        setting, noises, temperatures, targets=targets, seed=seed, threads=threads
    )
    snr = simulation.snr()
    table: Table = []
    for level, noise in enumerate(noises):
        limit = gate_advantage(setting, noise)
        for place, temperature in enumerate(temperatures):
            gain = snr[level, GATE_FIRST, place] - snr[level, UNGATED, place]
            row: Row = {
                "rho": noise.rho,
                "tau": noise.tau,
                "temperature": temperature,
            }
            row |= estimated("gain_times_t", gain.scaled(temperature))
            row |= estimated("gain_times_t2", gain.scaled(temperature**2))
            table.append(row | {"gain_times_t2_limit": limit})
    return table


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

    return Estimate(
        np.asarray(root(gain.value)), np.array([root(c) for c in gain.replicates])
    )
