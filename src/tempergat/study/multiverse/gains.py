"""The gains of the variants in every cell where they were run."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tempergat.nn import METHODS
from tempergat.stats import PairedComparison, Summary, compare_pairs, summarise
from tempergat.study.multiverse.cells import Cell, RunIndex
from tempergat.study.multiverse.plan import MultiversePlan

Scores = Mapping[int, float | None]


@dataclass(frozen=True)
class CellGains:
    """The gains in one cell on one dataset.

    Attributes:
        cell: The cell.
        dataset: The dataset.
        gains: Each variant against its backbone over paired seeds, by variant. Holm's
            correction covers the paper's variants; the others have one of their own.
    """

    cell: Cell
    dataset: str
    gains: dict[str, PairedComparison]


@dataclass(frozen=True)
class VariationEffect:
    """What a variation changes, averaged over the methods it concerns.

    Attributes:
        variation: Its name in the plan.
        dataset: The dataset.
        selection: The selection rule.
        methods: The number of methods.
        change: Score with the variation minus score without, over seeds.
    """

    variation: str
    dataset: str
    selection: str
    methods: int
    change: Summary


def cell_gains(
    plan: MultiversePlan, cells: Sequence[Cell], runs: RunIndex
) -> list[CellGains]:
    """The gains in every cell and dataset whose variants were all run.

    Args:
        plan: The plan.
        cells: The cells, nearest first.
        runs: The runs.
    """
    found = []
    for cell in cells:
        for dataset in plan.datasets:
            scores = _cell_scores(plan, cell, dataset, runs)
            if scores is not None:
                gains = {c.method: c for c in _compared(plan, scores)}
                found.append(CellGains(cell, dataset, gains))
    return found


def variation_effects(
    plan: MultiversePlan, cells: Sequence[Cell], runs: RunIndex
) -> list[VariationEffect]:
    """What each variation changes in the given cells, where all its methods were run.

    Args:
        plan: The plan.
        cells: The cells of the nearest training, one for each selection rule.
        runs: The runs.
    """
    effects = []
    for variation in plan.variations:
        for dataset in plan.datasets:
            for cell in cells:
                effect = _effect(plan, variation, dataset, cell, runs)
                if effect is not None:
                    effects.append(effect)
    return effects


def _cell_scores(
    plan: MultiversePlan, cell: Cell, dataset: str, runs: RunIndex
) -> dict[str, Scores] | None:
    scores: dict[str, Scores] = {}
    for method in (*plan.baselines, *plan.variants):
        config = plan.config(cell.training, dataset, method)
        found = runs.scores(dataset, config, plan.run_seeds, cell.selection)
        if found is None:
            return None
        scores[method] = found
    return scores


def _compared(
    plan: MultiversePlan, scores: Mapping[str, Scores]
) -> list[PairedComparison]:
    comparisons = []
    for in_paper in (True, False):
        against = {
            name: str(METHODS[name].backbone)
            for name in plan.variants
            if METHODS[name].in_paper == in_paper
        }
        comparisons += compare_pairs(scores, against)
    return comparisons


def _effect(
    plan: MultiversePlan, variation: str, dataset: str, cell: Cell, runs: RunIndex
) -> VariationEffect | None:
    changes: list[Scores] = []
    for method in plan.varied_methods(variation):
        varied, plain = (
            runs.scores(
                dataset,
                plan.config(cell.training, dataset, method, name),
                plan.run_seeds,
                cell.selection,
            )
            for name in (variation, None)
        )
        if varied is None or plain is None:
            return None
        changes.append(
            {
                seed: None
                if (new := varied[seed]) is None or (old := plain[seed]) is None
                else new - old
                for seed in plan.run_seeds
            }
        )
    averages = []
    for seed in plan.run_seeds:
        values = [value for of_one in changes if (value := of_one[seed]) is not None]
        if len(values) == len(changes):
            averages.append(math.fsum(values) / len(values))
    return VariationEffect(
        variation, dataset, cell.selection, len(changes), summarise(averages)
    )
