"""Trends of the learned values with the noise level, tested over seeds.

Seeds are the blocks of Page's test: each seed has its own weights and noise, and a run
at every level. The test asks whether a value rises or falls with the level within the
blocks.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tempergat.nn import METHODS
from tempergat.stats import (
    ALPHA,
    PairedComparison,
    Summary,
    compare_pairs,
    holm,
    page_p,
    rises,
    summarise,
)
from tempergat.study.noise.moment_columns import SELECTED, Moment, layer_values
from tempergat.study.noise.variants import variant_of
from tempergat.training import CLEAN, Condition, Run

Direction = Literal["rises", "falls", "no trend", "too few runs"]

# The test accuracy of a run in percent, and the selected epoch; all other quantities
# are those of a layer.
ACCURACY = "accuracy"
EPOCH = "epoch"


@dataclass(frozen=True)
class Series:
    """One value of one variant against the levels of one kind of noise.

    Attributes:
        variant: The method, and whether its theta was not decayed.
        noise: `gaussian` or `missing`.
        tau: tau of the missing coordinates; None for Gaussian noise.
        quantity: `accuracy`, `epoch`, `temperature`, `gate`, `spread` or `entropy`.
        layer: Number of the layer, from 1; None for the accuracy and the epoch.
        levels: The noise levels, rising from 0.
        values: [seeds, levels], for the seeds with a finished run at every level.
        lost_seeds: How many seeds lack a finished run at some level.
        moment: When the values of layers were recorded.
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
    moment: Moment = SELECTED

    @property
    def summaries(self) -> list[Summary]:
        """Mean and interval at every level."""
        return [summarise(column.tolist()) for column in self.values.T]


@dataclass(frozen=True)
class Trend:
    """The trend of a series.

    Attributes:
        series: The values that were tested.
        first: Mean at level 0.
        last: Mean at the highest level.
        change: Mean over seeds of the highest level minus level 0.
        p: Two-sided p of Page's test.
        p_holm: The same, Holm-corrected over its family.
        direction: The result of the corrected test at 5 %.
    """

    series: Series
    first: float | None
    last: float | None
    change: Summary
    p: float | None
    p_holm: float | None = None
    direction: Direction = "too few runs"


def series_of(
    runs: Sequence[Run],
    noise: str,
    tau: float | None,
    quantity: str,
    wanted: Callable[[str], bool] = lambda method: True,
    moment: Moment = SELECTED,
) -> list[Series]:
    """The series of one quantity, by layer and variant.

    Args:
        runs: Runs on one dataset.
        noise: `gaussian` or `missing`.
        tau: tau of the missing coordinates; None for Gaussian noise.
        quantity: `accuracy`, `epoch`, or one of a layer's.
        wanted: Which methods to take.
        moment: When the values of layers were recorded.
    """
    chosen = [
        run
        for run in runs
        if wanted(run.method)
        and (
            run.condition is None
            or (run.condition.noise, run.condition.tau) == (noise, tau)
        )
    ]
    found = []
    for variant, of_variant in _by_variant(chosen).items():
        layers: Iterable[int | None] = [None]
        if quantity not in (ACCURACY, EPOCH):
            depth = max(len(layer_values(run, quantity, moment)) for run in of_variant)
            layers = range(1, depth + 1)
        found += [
            _series(variant, of_variant, noise, tau, quantity, layer, moment)
            for layer in layers
        ]
    return sorted(found, key=lambda series: series.layer or 0)


def _by_variant(runs: Sequence[Run]) -> dict[str, list[Run]]:
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(variant_of(run), []).append(run)
    return found


def _series(
    variant: str,
    runs: Sequence[Run],
    noise: str,
    tau: float | None,
    quantity: str,
    layer: int | None,
    moment: Moment,
) -> Series:
    values = {
        (run.seed, _condition(run).level): _value(run, quantity, layer, moment)
        for run in runs
    }
    levels = sorted({_condition(run).level for run in runs})
    seeds = sorted({run.seed for run in runs})
    table = [[values.get((seed, level)) for level in levels] for seed in seeds]
    whole = [line for line in table if None not in line]
    return Series(
        dataset=runs[0].dataset,
        variant=variant,
        method=runs[0].method,
        noise=noise,
        tau=tau,
        quantity=quantity,
        layer=layer,
        levels=tuple(levels),
        values=np.array(whole, dtype=np.float64).reshape(len(whole), len(levels)),
        lost_seeds=len(seeds) - len(whole),
        moment=moment,
    )


def _condition(run: Run) -> Condition:
    return run.condition or CLEAN


def _value(run: Run, quantity: str, layer: int | None, moment: Moment) -> float | None:
    if quantity == ACCURACY:
        return accuracy(run)
    if quantity == EPOCH:
        return run.selected_epoch
    values = layer_values(run, quantity, moment)
    return values[layer - 1] if layer is not None and layer <= len(values) else None


def trends_of(family: Sequence[Series]) -> list[Trend]:
    """Test every series of a Holm family."""
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


def accuracy(run: Run) -> float | None:
    """Test accuracy in percent; None for a failed run."""
    scores = run.selected_scores
    return None if scores is None else 100.0 * scores.test


def against_backbone(
    runs: Sequence[Run],
) -> dict[Condition, list[PairedComparison]]:
    """The accuracy of every variant against that of its backbone, by condition.

    One Holm family per dataset and condition.

    Args:
        runs: Runs on one dataset.

    Returns:
        By condition, the comparisons over paired seeds, in percent points.
    """
    found: dict[Condition, list[PairedComparison]] = {}
    for condition in dict.fromkeys(_condition(run) for run in runs):
        scores: dict[str, dict[int, float | None]] = {}
        backbones: dict[str, str] = {}
        of_condition = [run for run in runs if _condition(run) == condition]
        for variant, of_variant in _by_variant(of_condition).items():
            scores[variant] = {run.seed: accuracy(run) for run in of_variant}
            backbones[variant] = METHODS[of_variant[0].method].backbone
        against: Mapping[str, str] = {
            variant: backbone
            for variant, backbone in backbones.items()
            if variant != backbone and backbone in scores
        }
        found[condition] = compare_pairs(scores, against)
    return found
