"""The whole analysis: every table of `tempergat theory`, and a summary of them."""

from collections.abc import Callable
from dataclasses import dataclass

from tempergat.theory.model import GaussianNoise, MissingNoise, standard_setting
from tempergat.theory.proofs.check import FAILS, HOLDS, UNSEEN, judged, table_of
from tempergat.theory.proofs.gate import gate_steps
from tempergat.theory.proofs.temperature import temperature_steps
from tempergat.theory.studies.beyond import (
    gate_scenarios,
    scenarios,
    temperature_scenarios,
)
from tempergat.theory.studies.gate import gain_order, gate_boundary, gate_curves
from tempergat.theory.studies.layer import layer_check
from tempergat.theory.studies.learned import learned_study
from tempergat.theory.studies.temperature import temperature_study
from tempergat.theory.tables import Row, Table

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


@dataclass(frozen=True)
class Report:
    """Tables by name, and the lines that summarise them."""

    tables: dict[str, Table]
    verdicts: list[str]


def analyse(
    effort: Effort,
    *,
    seed: int = 0,
    threads: int = 2,
    progress: Callable[[str], None] = lambda part: None,
) -> Report:
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
    return Report(tables, verdicts(tables))


def verdicts(tables: dict[str, Table]) -> list[str]:
    """A summary of the tables, one line each."""
    return [
        _proof_verdict(tables["proof_steps"]),
        _one_verdict(tables["best_temperature"]),
        _best_verdict(tables["best_temperature"]),
        _order_verdict(tables["gain_order"]),
        _boundary_verdict(tables["gate_boundary"]),
        _post_verdict(tables["gate_curves"]),
        _self_loop_verdict(tables["gate_scenarios"]),
        _heterophily_verdict(tables["temperature_scenarios"]),
        _layer_verdict(tables["layer_check"]),
        _learned_verdict(tables["learned"]),
    ]


def _proof_verdict(table: Table) -> str:
    count = {
        verdict: sum(row["verdict"] == verdict for row in table)
        for verdict in (HOLDS, UNSEEN, FAILS)
    }
    line = (
        f"proof steps: {count[HOLDS]} of {len(table)} checks hold (equalities at "
        f"99.9 %, Holm), {count[UNSEEN]} are within noise, {count[FAILS]} fail"
    )
    failed = [f"{r['step']} at {r['at']}" for r in table if r["verdict"] == FAILS]
    return ": ".join([line, ", ".join(failed)]) if failed else line


def _one_verdict(table: Table) -> str:
    good = [row["sigma"] for row in table if row["one_is_good"]]
    if not good:
        return "T = 1 is nowhere within 5 % of the best temperature"
    return (
        f"T = 1 is within 5 % of the best temperature for sigma from {min(good):g} to "
        f"{max(good):g} of those tried; below it is too smooth, above too sharp"
    )


def _best_verdict(table: Table) -> str:
    last = table[-1]
    return (
        f"the best T at sigma {last['sigma']:g} is {last['best_temperature']:.3g} "
        f"[{last['best_temperature_low']:.3g}, {last['best_temperature_high']:.3g}], "
        f"by its closed form {last['weak_logit_best']:.3g}; its SNR is "
        f"{last['best_snr']:.4g}, uniform attention's {last['uniform_limit']:.4g}"
    )


def _order_verdict(table: Table) -> str:
    last = table[-1]
    return (
        f"at tau {last['tau']:g} and T = {last['temperature']:g} the gate's gain times "
        f"T^2 is {last['gain_times_t2']:.4g} [{last['gain_times_t2_low']:.4g}, "
        f"{last['gain_times_t2_high']:.4g}], its limit "
        f"{last['gain_times_t2_limit']:.4g}: nothing is gained at first order in 1/T"
    )


def _boundary_verdict(table: Table) -> str:
    half = next(row for row in table if (row["rho"], row["temperature"]) == (0.5, 1.0))
    return (
        "at rho 0.5 and T = 1 the oracle gate hurts below tau = "
        f"{half['tau_star']:.3g} [{half['tau_star_low']:.3g}, "
        f"{half['tau_star_high']:.3g}], with weak logits below "
        f"{half['tau_star_weak_logit']:.3g}; the signal is 0.25 per coordinate"
    )


def _post_verdict(table: Table) -> str:
    def cell(variant: str, column: str) -> float:
        return float(
            next(
                row[column]
                for row in table
                if (row["rho"], row["tau"], row["temperature"], row["variant"])
                == (0.5, 1.0, 1.0, variant)
            )
        )

    return (
        "at rho 0.5, tau 1, T = 1 the label SNR is "
        f"{cell('ungated', 'snr'):.3g} without a gate, {cell('gate_first', 'snr'):.3g} "
        f"with it first and {cell('post_gate', 'snr'):.3g} with it after attention"
    )


def _self_loop_verdict(table: Table) -> str:
    row = next(
        row
        for row in table
        if row["scenario"] == "self_loop" and row["temperature"] == 4.0
    )
    return (
        "with self-loops Theorem 2 is reversed: at rho 0.5, tau 1, T = 4 the label SNR "
        f"is {row['ungated_size']:.3g} ungated and {row['gate_first_size']:.3g} gated"
    )


def _heterophily_verdict(table: Table) -> str:
    def best(sigma: float) -> Row:
        return max(
            (
                row
                for row in table
                if (row["scenario"], row["sigma"]) == ("heterophily", sigma)
            ),
            key=lambda row: row["size"],
        )

    noisy, clean = best(1.0), best(0.2)
    return (
        "under heterophily the largest |SNR| of those tried is "
        f"{noisy['size']:.3g} at sigma 1, at T = {noisy['temperature']:g}, and "
        f"{clean['size']:.3g} at sigma 0.2, at T = {clean['temperature']:g}"
    )


def _layer_verdict(table: Table) -> str:
    largest = max(float(row["largest_difference"]) for row in table)
    return (
        "a real GATv2 layer with the paper's weights attends as the formula does, to "
        f"{largest:.1e}"
    )


def _learned_verdict(table: Table) -> str:
    rows = {
        row["variant"]: row for row in table if row["noise"] == "missing rho=0.5 tau=1"
    }
    gate = rows["gate_first"]
    return (
        "trained on graphs at rho 0.5, tau 1 the gate is "
        f"{gate['gate_observed']:.3f} on observed and {gate['gate_lost']:.3f} on lost "
        f"coordinates (the oracle's 1 and 0); label SNR {gate['snr']:.3g} with it, "
        f"{rows['temperature']['snr']:.3g} with the temperature alone, "
        f"{rows['oracle_temperature']['snr']:.3g} with the oracle"
    )
