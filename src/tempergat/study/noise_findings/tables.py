"""Values of the second noise study in arrays: seeds, methods, conditions."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tempergat.nn import METHODS
from tempergat.study.noise import (
    SELECTED,
    Moment,
    NoisePlan,
    layer_values,
    read_noise_csv,
)
from tempergat.training import CLEAN, Condition, Run

Values = NDArray[np.float64]


def runs_by_dataset(folder: Path, plan: NoisePlan) -> dict[str, list[Run]]:
    """The runs of each dataset of a plan that has a file; other files are left out."""
    files = {name: folder / f"{name}.csv" for name in plan.datasets}
    found = {name: read_noise_csv(file) for name, file in files.items()}
    return {name: runs for name, runs in found.items() if runs}


def with_complete_seeds(runs: Sequence[Run], plan: NoisePlan) -> list[Run]:
    """The runs of seeds that have a finished run of every method and condition."""
    wanted = {(m, c) for m in plan.methods for c in plan.conditions}
    found: dict[int, set[tuple[str, Condition]]] = {}
    for run in runs:
        if run.status == "done":
            key = (run.method, run.condition or CLEAN)
            found.setdefault(run.seed, set()).add(key)
    return [run for run in runs if wanted <= found.get(run.seed, set())]


def seeds_of(runs: Sequence[Run]) -> list[int]:
    """The seeds of some runs, in order."""
    return sorted({run.seed for run in runs})


def table(
    runs: Sequence[Run],
    methods: Sequence[str],
    conditions: Sequence[Condition],
    value: Callable[[Run], float],
) -> Values:
    """A value of every run, [seeds, methods, conditions].

    Args:
        runs: Runs on one dataset, of complete seeds.
        methods: The methods, in the order wanted.
        conditions: The conditions, likewise.
        value: The value of a run.
    """
    by_key = {(run.seed, run.method, run.condition or CLEAN): run for run in runs}
    return np.array(
        [
            [[value(by_key[seed, m, c]) for c in conditions] for m in methods]
            for seed in seeds_of(runs)
        ]
    )


def temperature_table(
    runs: Sequence[Run], plan: NoisePlan, layer: int, moment: Moment
) -> Values:
    """T over sigma, mean over the paper's tempered methods, [seeds, levels]."""
    methods = tempered_methods(plan)
    value = _layer_value("temperature", layer, moment)
    found: Values = table(runs, methods, gaussian_conditions(plan), value).mean(axis=1)
    return found


def gate_table(
    runs: Sequence[Run], plan: NoisePlan, layer: int, moment: Moment
) -> Values:
    """The mean gate over rho, mean over the paper's gated methods and over tau."""
    methods = [
        m for m in plan.methods if METHODS[m].gate is not None and METHODS[m].in_paper
    ]
    value = _layer_value("gate", layer, moment)
    levels = []
    for rho in plan.missing:
        conditions = [Condition("missing", rho, tau) for tau in plan.tau]
        conditions = conditions if rho > 0 else [CLEAN]
        levels.append(table(runs, methods, conditions, value).mean(axis=(1, 2)))
    return np.stack(levels, axis=1)


def flatness_table(
    runs: Sequence[Run], plan: NoisePlan, layer: int, moment: Moment
) -> Values:
    """The entropy of attention with temperature less that without, over sigma.

    Mean over the paper's tempered methods, each against the method with the same
    backbone and gate.
    """
    methods = tempered_methods(plan)
    plain = [without_temperature(method) for method in methods]
    conditions = gaussian_conditions(plan)
    value = _layer_value("entropy", layer, moment)
    tempered = table(runs, methods, conditions, value).mean(axis=1)
    difference: Values = tempered - table(runs, plain, conditions, value).mean(axis=1)
    return difference


def gain_table(
    runs: Sequence[Run],
    methods: Sequence[str],
    conditions: Sequence[Condition],
    rule: str,
) -> Values:
    """Test accuracy less that of the backbone in points, [seeds, methods, conditions].

    Args:
        runs: Runs on one dataset, of complete seeds.
        methods: The methods.
        conditions: The conditions.
        rule: The selection rule whose epoch is scored, or `selected` for the
            configured one.
    """

    def score(run: Run) -> float:
        scores = run.selected_scores if rule == SELECTED else run.scores[rule]
        assert scores is not None  # these runs are finished
        return 100.0 * scores.test

    backbones = [METHODS[method].backbone for method in methods]
    return table(runs, methods, conditions, score) - table(
        runs, backbones, conditions, score
    )


def tempered_methods(plan: NoisePlan) -> list[str]:
    """The plan's methods with a temperature that are the paper's."""
    return [
        m
        for m in plan.methods
        if METHODS[m].temperature is not None and METHODS[m].in_paper
    ]


def without_temperature(method: str) -> str:
    """The method with the same backbone and gate, and no temperature."""
    wanted = METHODS[method]._replace(temperature=None)
    return next(
        name
        for name, other in METHODS.items()
        if other[:3] == wanted[:3]  # whether it is in the paper does not matter
    )


def gaussian_conditions(plan: NoisePlan) -> list[Condition]:
    """The conditions without noise and with Gaussian noise, by rising sigma."""
    return [c for c in plan.conditions if c.noise != "missing"]


def noisy_conditions(plan: NoisePlan, noise: str) -> list[Condition]:
    """The conditions with one kind of noise, without the level zero."""
    return [c for c in plan.conditions if c.noise == noise]


def _layer_value(quantity: str, layer: int, moment: Moment) -> Callable[[Run], float]:
    def value(run: Run) -> float:
        return layer_values(run, quantity, moment)[layer - 1]

    return value
