"""The tests of the second noise study, as its plan states them."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tempergat.stats import (
    ALPHA,
    Summary,
    compare_pairs,
    equivalence_p,
    holm,
    page_p,
    rises,
    summarise,
)
from tempergat.study.noise import SELECTED, Moment, NoisePlan
from tempergat.study.noise_findings.tables import (
    Values,
    flatness_table,
    gain_table,
    gate_table,
    noisy_conditions,
    seeds_of,
    temperature_table,
)
from tempergat.training import Run

# The runs of complete seeds, by dataset.
Runs = Mapping[str, Sequence[Run]]
TableOf = Callable[[Sequence[Run], NoisePlan, int, Moment], Values]

# The moment that decides: the trained model.
LAST = "last_epoch"
LAYERS = (1, 2)
# Points of accuracy that count as no gain.
MARGIN = 0.5


@dataclass(frozen=True)
class Cell:
    """The trend of one value with the noise, on one dataset and in one layer.

    Attributes:
        levels: The noise levels.
        means: The value at each level, mean over seeds.
        change: Highest level less level zero, over seeds.
        p: Page's test, two-sided, with seeds as blocks.
        p_holm: Corrected over all datasets and layers.
        direction: The result at 5 %.
        seeds: How many seeds.
    """

    dataset: str
    layer: int
    levels: tuple[float, ...]
    means: tuple[float, ...]
    change: Summary
    p: float
    seeds: int
    p_holm: float = 1.0
    direction: str = "no trend"


@dataclass(frozen=True)
class TrendClaim:
    """One value in all datasets and layers, at every moment.

    Attributes:
        at: The cells by moment: fixed epochs, `selected` and selection rules.
    """

    at: Mapping[Moment, Sequence[Cell]]

    @property
    def cells(self) -> Sequence[Cell]:
        """The cells at the last epoch, which decide."""
        return self.at[LAST]

    def count(self, direction: str, moment: Moment = LAST) -> int:
        """In how many cells the value rises, falls or has no trend."""
        return sum(cell.direction == direction for cell in self.at[moment])


@dataclass(frozen=True)
class Gain:
    """The gain in accuracy of some methods over their backbones, under one noise.

    Attributes:
        name: What the methods have in common.
        methods: The methods.
        noise: `missing` or `gaussian`.
        summary: Points, over seeds.
        p: Paired t-test.
        p_holm: Corrected over the four families.
        is_none: Whether it is shown to lie within half a point of zero.
        by_dataset: The same for each dataset.
    """

    name: str
    methods: tuple[str, ...]
    noise: str
    summary: Summary
    p: float | None
    is_none: bool
    by_dataset: Mapping[str, Summary]
    p_holm: float | None = None

    @property
    def verdict(self) -> str:
        """Whether there is a gain, in words."""
        mean = self.summary.mean
        if mean is not None and self.p_holm is not None and self.p_holm < ALPHA:
            return "gains" if mean > 0 else "loses"
        return "no gain" if self.is_none else "not shown"


FAMILIES = (
    (
        "gate-first",
        ("gated_first", "gated_temp", "gated_first_v2", "gated_temp_v2"),
        "missing",
    ),
    ("post-gate", ("gated", "gated_v2"), "missing"),
    ("temperature alone", ("temp_only", "temp_only_v2"), "missing"),
    ("temperature alone", ("temp_only", "temp_only_v2"), "gaussian"),
)


@dataclass(frozen=True)
class Claims:
    """All tests of the study."""

    temperature: TrendClaim
    gate: TrendClaim
    flatness: TrendClaim
    gains: Sequence[Gain]
    single_methods: Sequence[Gain]
    gains_by_loss: Sequence[Gain]


def all_claims(runs: Runs, plan: NoisePlan) -> Claims:
    """Make all tests of the plan."""
    singles = [
        (method, (method,), noise)
        for noise in ("missing", "gaussian")
        for method in plan.methods
        if method not in ("gat", "gatv2")
    ]
    return Claims(
        temperature=_trends(runs, plan, temperature_table, plan.gaussian),
        gate=_trends(runs, plan, gate_table, plan.missing),
        flatness=_trends(runs, plan, flatness_table, plan.gaussian),
        gains=family_gains(runs, plan),
        single_methods=[
            gain
            for noise in ("missing", "gaussian")
            for gain in gains_of(
                runs,
                plan,
                [family for family in singles if family[2] == noise],
            )
        ],
        gains_by_loss=gains_of(runs, plan, FAMILIES, "best_val_loss"),
    )


def family_gains(runs: Runs, plan: NoisePlan) -> list[Gain]:
    """The gains of the four families at the selected epoch, in any noise study.

    Args:
        runs: The runs of complete seeds, by dataset; each method once.
        plan: The study's plan.
    """
    return gains_of(runs, plan, FAMILIES)


def _trends(
    runs: Runs, plan: NoisePlan, table_of: TableOf, levels: Sequence[float]
) -> TrendClaim:
    moments: list[Moment] = [*plan.epochs, LAST, SELECTED, "best_val_loss"]
    return TrendClaim(
        {moment: _cells(runs, plan, table_of, levels, moment) for moment in moments}
    )


def _cells(
    runs: Runs,
    plan: NoisePlan,
    table_of: TableOf,
    levels: Sequence[float],
    moment: Moment,
) -> list[Cell]:
    cells, tables = [], []
    for dataset, found in runs.items():
        for layer in LAYERS:
            values = table_of(found, plan, layer, moment)
            tables.append(values)
            cells.append(
                Cell(
                    dataset,
                    layer,
                    tuple(levels),
                    tuple(values.mean(axis=0).tolist()),
                    summarise((values[:, -1] - values[:, 0]).tolist()),
                    page_p(values),
                    len(values),
                )
            )
    corrected = holm([cell.p for cell in cells])
    return [
        replace(cell, p_holm=p, direction=_direction(values, p))
        for cell, values, p in zip(cells, tables, corrected, strict=True)
    ]


def _direction(values: Values, p: float) -> str:
    if p >= ALPHA:
        return "no trend"
    return "rises" if rises(values) else "falls"


def gains_of(
    runs: Runs,
    plan: NoisePlan,
    families: Sequence[tuple[str, tuple[str, ...], str]],
    rule: str = SELECTED,
) -> list[Gain]:
    """The gains of some families; Holm's correction covers them.

    Args:
        runs: The runs of complete seeds, by dataset.
        plan: The study's plan.
        families: Name, methods and kind of noise of each.
        rule: The selection rule whose epoch is scored, or `selected` for the
            configured one.
    """
    found = []
    for name, methods, noise in families:
        by_dataset = {
            dataset: _gain_by_seed(of_dataset, plan, methods, noise, rule)
            for dataset, of_dataset in runs.items()
        }
        common = set.intersection(*(set(gains) for gains in by_dataset.values()))
        pooled = {
            seed: float(np.mean([gains[seed] for gains in by_dataset.values()]))
            for seed in sorted(common)
        }
        (compared,) = compare_pairs(
            {"gain": pooled, "none": dict.fromkeys(pooled, 0.0)}, {"gain": "none"}
        )
        summary = summarise(list(pooled.values()))
        found.append(
            Gain(
                name,
                methods,
                noise,
                summary,
                compared.t_p,
                _is_none(summary),
                {d: summarise(list(g.values())) for d, g in by_dataset.items()},
            )
        )
    corrected = holm([gain.p for gain in found])
    return [replace(g, p_holm=p) for g, p in zip(found, corrected, strict=True)]


def _gain_by_seed(
    runs: Sequence[Run],
    plan: NoisePlan,
    methods: Sequence[str],
    noise: str,
    rule: str,
) -> dict[int, float]:
    gains = gain_table(runs, methods, noisy_conditions(plan, noise), rule)
    means = gains.mean(axis=(1, 2)).tolist()
    return dict(zip(seeds_of(runs), means, strict=True))


def _is_none(summary: Summary) -> bool:
    if summary.mean is None or not summary.std:
        return False
    error = summary.std / math.sqrt(summary.runs)
    return equivalence_p(summary.mean, error, summary.runs - 1, MARGIN) < ALPHA
