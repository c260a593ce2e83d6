"""The whole analysis: every table of docs/theory.md."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from studies.theory.model import GaussianNoise, MissingNoise, standard_setting
from studies.theory.proofs.check import judged, table_of
from studies.theory.proofs.gate import gate_steps
from studies.theory.proofs.temperature import temperature_steps
from studies.theory.rows import Table, to_csv
from studies.theory.studies.beyond import (
    gate_scenarios,
    scenarios,
    temperature_scenarios,
)
from studies.theory.studies.gate import gain_order, gate_boundary, gate_curves
from studies.theory.studies.layer import layer_check
from studies.theory.studies.learned import learned_study
from studies.theory.studies.temperature import temperature_study
from tempergat.base import write_into

SIGMAS = (0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)
TEMPERATURES = tuple(2.0 ** (half / 2) for half in range(-6, 25))
RHOS = (0.1, 0.3, 0.5, 0.7, 0.9)
BOUNDARY_RHOS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
TAUS = tuple(0.25 * 2.0**power for power in range(-5, 5))
GATE_TEMPERATURES = (1.0, 2.0, 4.0, 16.0)
ORDER_TAUS = (0.5, 1.0, 2.0, 4.0)
ORDER_TEMPERATURES = (4.0, 8.0, 16.0, 32.0, 64.0)
LAYER_TEMPERATURES = (0.125, 1.0, 8.0, 1024.0)
LEARNED_NODES = 1000
SCENARIO_SIGMAS = (0.2, 0.5, 1.0, 4.0)
SCENARIO_TEMPERATURES = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0, float("inf"))


@dataclass(frozen=True)
class Effort:
    """How many targets each part simulates, and how much is trained."""

    proofs: int
    curves: int
    gates: int
    order: int
    graphs: int
    steps: int
    learned: tuple[GaussianNoise | MissingNoise, ...]


FULL = Effort(
    proofs=500_000,
    curves=400_000,
    gates=200_000,
    order=2_000_000,
    graphs=5,
    steps=200,
    learned=(
        GaussianNoise(0.5),
        GaussianNoise(1.0),
        GaussianNoise(2.0),
        MissingNoise(0.5, 0.25),
        MissingNoise(0.5, 1.0),
        MissingNoise(0.5, 4.0),
    ),
)
QUICK = Effort(
    proofs=20_000,
    curves=20_000,
    gates=10_000,
    order=100_000,
    graphs=2,
    steps=30,
    learned=(MissingNoise(0.5, 1.0),),
)


GRAPHS = ()


def run(results: Path) -> None:
    """Make the tables in a folder of results."""
    tables = analyse(FULL, progress=lambda part: print(f"{part} ..."))
    for name, table in tables.items():
        write_into(results, f"{name}.csv", to_csv(table))


def analyse(
    effort: Effort,
    *,
    seed: int = 0,
    threads: int = 2,
    progress: Callable[[str], None] = lambda part: None,
) -> dict[str, Table]:
    """Runs every part of the analysis.

    Args:
        effort: How many targets each part simulates, and how much is trained.
        seed: Seed of the random numbers.
        threads: Worker threads.
        progress: Called with the name of each part before it runs.
    """
    setting = standard_setting()
    tables: dict[str, Table] = {}

    progress("steps of the proofs")
    steps = temperature_steps(
        setting, targets=effort.proofs, seed=seed, threads=threads
    )
    steps += gate_steps(setting, targets=effort.proofs, seed=seed, threads=threads)
    tables["proof_steps"] = table_of(judged(steps))

    progress("temperature under Gaussian noise")
    study = temperature_study(
        setting,
        SIGMAS,
        TEMPERATURES,
        targets=effort.curves,
        seed=seed + 1,
        threads=threads,
    )
    tables["temperature_curves"] = study.curves
    tables["best_temperature"] = study.best

    progress("gates under missing coordinates")
    tables["gate_curves"] = gate_curves(
        setting,
        RHOS,
        TAUS,
        GATE_TEMPERATURES,
        targets=effort.gates // 2,
        seed=seed + 2,
        threads=threads,
    )
    progress("where the gate hurts")
    tables["gate_boundary"] = gate_boundary(
        setting,
        BOUNDARY_RHOS,
        GATE_TEMPERATURES,
        targets=effort.gates,
        seed=seed + 3,
        threads=threads,
    )
    progress("how fast the gate's gain vanishes")
    tables["gain_order"] = gain_order(
        setting,
        [MissingNoise(0.5, tau) for tau in ORDER_TAUS],
        ORDER_TEMPERATURES,
        targets=effort.order,
        seed=seed + 4,
        threads=threads,
    )
    progress("random degrees, self-loops, classes, heterophily")
    tables["temperature_scenarios"] = temperature_scenarios(
        scenarios(setting),
        SCENARIO_SIGMAS,
        SCENARIO_TEMPERATURES,
        targets=effort.gates,
        seed=seed + 5,
        threads=threads,
    )
    tables["gate_scenarios"] = gate_scenarios(
        scenarios(setting),
        MissingNoise(0.5, 1.0),
        GATE_TEMPERATURES,
        targets=effort.gates,
        seed=seed + 6,
        threads=threads,
    )
    progress("the paper's weights in a real layer")
    tables["layer_check"] = layer_check(
        setting, LAYER_TEMPERATURES, nodes=60, seed=seed
    )
    tables["learned"] = learned_study(
        setting,
        effort.learned,
        nodes=LEARNED_NODES,
        seeds=range(seed, seed + effort.graphs),
        steps=effort.steps,
        progress=lambda part: progress(f"learned gate and temperature: {part}"),
    )
    return tables
