"""The whole analysis: every table of docs/theory.md."""

from pathlib import Path
from typing import NamedTuple

from studies.theory.curves import (
    gain_order,
    gate_boundary,
    gate_curves,
    gate_scenarios,
    temperature_curves,
    temperature_scenarios,
)
from studies.theory.learned import learned_study
from studies.theory.model import GaussianNoise, MissingNoise, Noise, standard_setting
from studies.theory.proofs.check import judged
from studies.theory.proofs.gate import gate_steps
from studies.theory.proofs.temperature import temperature_steps
from studies.theory.rows import Table, to_csv
from tempergat.base import write_into

GRAPHS = ()
SIGMAS = (0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)
TEMPERATURES = tuple(2.0 ** (half / 2) for half in range(-6, 25))
RHOS = (0.1, 0.3, 0.5, 0.7, 0.9)
BOUNDARY_RHOS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
TAUS = tuple(0.25 * 2.0**power for power in range(-5, 5))
GATE_TEMPERATURES = (1.0, 2.0, 4.0, 16.0)
ORDER_TAUS = (0.5, 1.0, 2.0, 4.0)
ORDER_TEMPERATURES = (4.0, 8.0, 16.0, 32.0, 64.0)
SCENARIO_SIGMAS = (0.2, 0.5, 1.0, 4.0)
SCENARIO_TEMPERATURES = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0, float("inf"))
LEARNED: tuple[Noise, ...] = (
    *(GaussianNoise(sigma) for sigma in (0.5, 1.0, 2.0)),
    *(MissingNoise(0.5, tau) for tau in (0.25, 1.0, 4.0)),
)


class Effort(NamedTuple):
    """How many targets each part simulates, and how much is trained."""

    proofs: int = 500_000
    curves: int = 400_000
    gates: int = 200_000
    order: int = 2_000_000
    graphs: int = 5
    steps: int = 200
    learned: tuple[Noise, ...] = LEARNED


def run(results: Path) -> None:
    """Make all tables in a folder of results."""
    for name, table in analyse(Effort()).items():
        write_into(results, f"{name}.csv", to_csv(table))


def analyse(effort: Effort) -> dict[str, Table]:
    """The tables by name; every part has random numbers of its own."""
    setting = standard_setting()
    gates = effort.gates
    steps = temperature_steps(setting, targets=effort.proofs, seed=0)
    steps += gate_steps(setting, targets=effort.proofs, seed=0)
    curves, best = temperature_curves(
        setting, SIGMAS, TEMPERATURES, targets=effort.curves, seed=1
    )
    return {
        "proof_steps": judged(steps),
        "temperature_curves": curves,
        "best_temperature": best,
        "gate_curves": gate_curves(
            setting, RHOS, TAUS, GATE_TEMPERATURES, targets=gates // 2, seed=2
        ),
        "gate_boundary": gate_boundary(
            setting, BOUNDARY_RHOS, GATE_TEMPERATURES, targets=gates, seed=3
        ),
        "gain_order": gain_order(
            setting,
            [MissingNoise(0.5, tau) for tau in ORDER_TAUS],
            ORDER_TEMPERATURES,
            targets=effort.order,
            seed=4,
        ),
        "temperature_scenarios": temperature_scenarios(
            setting, SCENARIO_SIGMAS, SCENARIO_TEMPERATURES, targets=gates, seed=5
        ),
        "gate_scenarios": gate_scenarios(
            setting, MissingNoise(0.5, 1.0), GATE_TEMPERATURES, targets=gates, seed=6
        ),
        "learned": learned_study(
            setting,
            effort.learned,
            nodes=1000,
            seeds=range(effort.graphs),
            steps=effort.steps,
        ),
    }
