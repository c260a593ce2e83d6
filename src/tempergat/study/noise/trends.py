"""What noise does to the learned values: trends over levels, tested over seeds.

Seeds are blocks: each has weights and noise of its own, and all levels. Page's test
asks whether a value rises or falls with the level inside the blocks.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tempergat.nn import METHODS
from tempergat.stats import (
    ALPHA,
    Comparison,
    Summary,
    compare_pairs,
    holm,
    page_p,
    rises,
    summarise,
)
from tempergat.study.noise.rows import NoiseRow
from tempergat.training import Condition

Direction = Literal["rises", "falls", "no trend", "too few runs"]

# The score of a run, in percent, beside what its layers have learned.
ACCURACY = "accuracy"


@dataclass(frozen=True)
class Series:
    """One value of one variant against the levels of one kind of noise.

    Attributes:
        variant: The method, and whether its theta went undecayed.
        noise: `gaussian` or `missing`.
        tau: Of the missing coordinates.
        quantity: `accuracy`, `temperature`, `gate`, `spread` or `entropy`.
        layer: From 1; None for the accuracy.
        levels: Rising from 0.
        values: By seed with a finished run at every level, [seeds, levels].
        lost_seeds: Seeds that failed at some level.
    """

    dataset: str
    variant: str
    method: str
    noise: str
    tau: float | None
    quantity: str
    layer: int | None
    levels: tuple[float, ...]
    values: NDArray[np.float64]
    lost_seeds: int

    @property
    def summaries(self) -> list[Summary]:
        """Mean and interval at every level."""
        return [summarise(column.tolist()) for column in self.values.T]


@dataclass(frozen=True)
class Trend:
    """What a series does from its first level to its last.

    Attributes:
        series: What was tested.
        first: Mean at level 0.
        last: Mean at the highest level.
        change: Mean over seeds of the highest level minus level 0.
        p: Two-sided p of Page's test.
        p_holm: The same, Holm-corrected over its family.
        direction: What the corrected test shows at 5 %.
    """

    series: Series
    first: float | None
    last: float | None
    change: Summary
    p: float | None
    p_holm: float | None = None
    direction: Direction = "too few runs"


def series_of(
    rows: Sequence[NoiseRow],
    noise: str,
    tau: float | None,
    quantity: str,
    wanted: Callable[[str], bool] = lambda method: True,
) -> list[Series]:
    """The series of one quantity, by layer and variant.

    Args:
        rows: Runs on one dataset.
        noise: `gaussian` or `missing`.
        tau: Of the missing coordinates.
        quantity: `accuracy`, or one of a layer's.
        wanted: Which methods to take.
    """
    chosen = [
        row
        for row in rows
        if wanted(row.method)
        and (
            row.condition.noise == "none"
            or (row.condition.noise, row.condition.tau) == (noise, tau)
        )
    ]
    found = []
    for variant in dict.fromkeys(row.variant for row in chosen):
        of_variant = [row for row in chosen if row.variant == variant]
        depth = max(len(row.layers.get(quantity, ())) for row in of_variant)
        layers = [None] if quantity == ACCURACY else range(1, depth + 1)
        found += [_series(of_variant, noise, tau, quantity, layer) for layer in layers]
    return sorted(found, key=lambda series: series.layer or 0)


def _series(
    rows: Sequence[NoiseRow],
    noise: str,
    tau: float | None,
    quantity: str,
    layer: int | None,
) -> Series:
    values = {
        (row.seed, row.condition.level): _value(row, quantity, layer) for row in rows
    }
    levels = sorted({row.condition.level for row in rows})
    seeds = sorted({row.seed for row in rows})
    table = [[values.get((seed, level)) for level in levels] for seed in seeds]
    whole = [line for line in table if None not in line]
    return Series(
        dataset=rows[0].dataset,
        variant=rows[0].variant,
        method=rows[0].method,
        noise=noise,
        tau=tau,
        quantity=quantity,
        layer=layer,
        levels=tuple(levels),
        values=np.array(whole, dtype=np.float64).reshape(len(whole), len(levels)),
        lost_seeds=len(seeds) - len(whole),
    )


def _value(row: NoiseRow, quantity: str, layer: int | None) -> float | None:
    if quantity == ACCURACY:
        return 100.0 * row.scores["test"] if row.scores else None
    values = row.layers.get(quantity, ())
    return values[layer - 1] if layer is not None and layer <= len(values) else None


def trends_of(family: Sequence[Series]) -> list[Trend]:
    """Tests every series of a family, Holm-corrected together."""
    trends = [_trend(series) for series in family]
    corrected = holm([trend.p for trend in trends])
    return [
        replace(trend, p_holm=p, direction=_direction(trend, p))
        for trend, p in zip(trends, corrected, strict=True)
    ]


def _trend(series: Series) -> Trend:
    values = series.values
    if values.shape[0] < 2 or values.shape[1] < 3:
        return Trend(series, None, None, summarise([]), None)
    change = summarise((values[:, -1] - values[:, 0]).tolist())
    means = values.mean(axis=0)
    return Trend(series, float(means[0]), float(means[-1]), change, page_p(values))


def _direction(trend: Trend, p: float | None) -> Direction:
    if p is None:
        return "too few runs"
    if p >= ALPHA:
        return "no trend"
    return "rises" if rises(trend.series.values) else "falls"


def against_backbone(
    rows: Sequence[NoiseRow],
) -> dict[Condition, list[Comparison]]:
    """Every variant's accuracy against its backbone's, condition by condition.

    One Holm family per dataset and condition.

    Args:
        rows: Runs on one dataset.

    Returns:
        By condition, the comparisons over paired seeds, in percent.
    """
    found: dict[Condition, list[Comparison]] = {}
    for condition in dict.fromkeys(row.condition for row in rows):
        scores: dict[str, dict[int, float | None]] = {}
        backbones: dict[str, str] = {}
        for row in rows:
            if row.condition == condition:
                score = _value(row, ACCURACY, None)
                scores.setdefault(row.variant, {})[row.seed] = score
                backbones[row.variant] = METHODS[row.method].backbone
        against: Mapping[str, str] = {
            variant: backbone
            for variant, backbone in backbones.items()
            if variant != backbone and backbone in scores
        }
        found[condition] = compare_pairs(scores, against)
    return found
