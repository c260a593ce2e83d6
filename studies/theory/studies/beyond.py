"""Outside the assumptions: random degrees, self-loops, more classes, heterophily."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from studies.theory.closed_forms import one_neighbour_snr, uniform_limit_snr
from studies.theory.model import Degree, GaussianNoise, MissingNoise, Setting
from studies.theory.neighbourhood import GATE_FIRST, UNGATED
from studies.theory.rows import Row, Table, estimated
from studies.theory.simulate import simulate


def scenarios(base: Setting) -> Mapping[str, Setting]:
    """The paper's setting, and settings that break one of its assumptions each."""
    mean = base.degree.counts[0]
    return {
        "paper": base,
        "poisson_degree": replace(base, degree=Degree.poisson(mean)),
        "poisson_degree_4": replace(base, degree=Degree.poisson(4)),
        "binomial_degree": replace(base, degree=Degree.binomial(4 * mean, 0.25)),
        "self_loop": replace(base, self_loop=True),
        "poisson_degree_4_self_loop": replace(
            base, degree=Degree.poisson(4), self_loop=True
        ),
        "four_classes": replace(base, classes=4),
        "heterophily": replace(base, a=base.b, b=base.a),
    }


def temperature_scenarios(
    settings: Mapping[str, Setting],
    sigmas: Sequence[float],
    temperatures: Sequence[float],
    *,
    targets: int,
    seed: int,
    threads: int = 2,
) -> Table:
    """SNR(T) of labels and features under Gaussian noise, for every scenario.

    Under heterophily the SNR is negative where attention is uniform, and only its
    absolute value matters. So the table has both.
    """
    table: Table = []
    for name, setting in settings.items():
        simulation = simulate(
            setting,
            [GaussianNoise(sigma) for sigma in sigmas],
            temperatures,
            targets=targets,
            seed=seed,
            readout=True,
            threads=threads,
        )
        snr, readout = simulation.snr(), simulation.readout_snr()
        for level, sigma in enumerate(sigmas):
            for place, temperature in enumerate(temperatures):
                row: Row = {
                    "scenario": name,
                    "sigma": sigma,
                    "temperature": temperature,
                }
                row |= estimated("snr", snr[level, 0, place])
                row |= estimated("size", abs(snr[level, 0, place]))
                row |= estimated("readout_size", abs(readout[level, 0, place]))
                row["uniform_limit"] = uniform_limit_snr(setting)
                row["one_neighbour"] = one_neighbour_snr(setting)
                table.append(row)
    return table


def gate_scenarios(
    settings: Mapping[str, Setting],
    noise: MissingNoise,
    temperatures: Sequence[float],
    *,
    targets: int,
    seed: int,
    threads: int = 2,
) -> Table:
    """Absolute SNR with and without the oracle gate, for every scenario."""
    table: Table = []
    for name, setting in settings.items():
        simulation = simulate(
            setting,
            [noise],
            temperatures,
            targets=targets,
            seed=seed,
            readout=True,
            threads=threads,
        )
        snr, readout = simulation.snr(), simulation.readout_snr()
        for place, temperature in enumerate(temperatures):
            ungated = abs(snr[0, UNGATED, place])
            gated = abs(snr[0, GATE_FIRST, place])
            row: Row = {
                "scenario": name,
                "rho": noise.rho,
                "tau": noise.tau,
                "temperature": temperature,
            }
            row |= estimated("ungated_size", ungated)
            row |= estimated("gate_first_size", gated)
            row |= estimated("gain", gated - ungated)
            for variant, label in enumerate(simulation.variants):
                size = abs(readout[0, variant, place])
                row |= estimated(f"{label}_readout", size)
            table.append(row)
    return table
