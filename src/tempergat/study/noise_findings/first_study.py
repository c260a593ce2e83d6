"""The first noise study, read again: trends adjusted for the selected epoch.

T and the gate move throughout training, and the first study has them at the selected
epoch alone, which moves with the noise. Within a level, seeds differ in that epoch, so
their slope over its logarithm can be estimated there and taken out of all values.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tempergat.study.noise import (
    EPOCH,
    NoisePlan,
    Series,
    Trend,
    analyse,
    decays_temperature,
    series_of,
    trends_of,
)
from tempergat.study.noise_findings.claims import FAMILIES, Gain, family_gains
from tempergat.study.noise_findings.tables import with_complete_seeds
from tempergat.training import Run


@dataclass(frozen=True)
class EpochEffect:
    """Trends of one quantity in one layer on one dataset.

    Attributes:
        quantity: `temperature` or `gate`.
        expected: The direction that the paper reports.
        as_measured: In how many variants it is found at the selected epoch.
        adjusted: In how many after the adjustment.
        variants: How many there are; for gates, times the values of tau.
        correlation: Smallest and largest correlation, within levels, of the value with
            the logarithm of the selected epoch, over variants.
    """

    dataset: str
    quantity: str
    layer: int
    expected: str
    as_measured: int
    adjusted: int
    variants: int
    correlation: tuple[float, float]


@dataclass(frozen=True)
class FirstGains:
    """Gains in accuracy in the first study, which suggested what the second tests.

    Attributes:
        same_datasets: Of the four families, on the datasets of the second study.
        all_datasets: On all datasets of the first.
    """

    same_datasets: Sequence[Gain]
    all_datasets: Sequence[Gain]


def first_gains(
    runs: Mapping[str, Sequence[Run]], plan: NoisePlan, datasets: Sequence[str]
) -> FirstGains | None:
    """The gains of the first study; None where it lacks methods or datasets.

    Args:
        runs: Its runs by dataset. Those with theta undecayed are left out.
        plan: Its plan.
        datasets: The datasets of the second study.
    """
    wanted = {method for _, methods, _ in FAMILIES for method in methods}
    if not wanted <= set(plan.methods) or not set(datasets) <= runs.keys():
        return None
    usual = {
        dataset: with_complete_seeds(
            [run for run in found if decays_temperature(run) is not False], plan
        )
        for dataset, found in runs.items()
    }
    if not all(usual.values()):
        return None
    same = {dataset: usual[dataset] for dataset in datasets}
    return FirstGains(family_gains(same, plan), family_gains(usual, plan))


def epoch_effects(runs: Sequence[Run], plan: NoisePlan) -> list[EpochEffect]:
    """The trends of T and of the gate on one dataset, before and after.

    Args:
        runs: The runs of the first study on the dataset.
        plan: Its plan.
    """
    found = analyse(runs, plan)
    effects = []
    for quantity, trends, expected in (
        ("temperature", found.temperature, "rises"),
        ("gate", found.gate, "falls"),
    ):
        epochs = [_epochs_beside(found.runs, trend.series) for trend in trends]
        adjusted = trends_of(
            [
                replace(trend.series, values=adjusted_values(trend.series.values, e))
                for trend, e in zip(trends, epochs, strict=True)
            ]
        )
        for layer in sorted({trend.series.layer or 0 for trend in trends}):
            here = [t.series.layer == layer for t in trends]
            correlations = [
                within_levels(trend.series.values, e)[1]
                for trend, e, is_here in zip(trends, epochs, here, strict=True)
                if is_here
            ]
            effects.append(
                EpochEffect(
                    found.dataset,
                    quantity,
                    layer,
                    expected,
                    _count(trends, layer, expected),
                    _count(adjusted, layer, expected),
                    sum(here),
                    (min(correlations), max(correlations)),
                )
            )
    return effects


def adjusted_values(
    values: NDArray[np.float64], epochs: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The values less what the logarithm of their epoch explains within levels.

    Args:
        values: [seeds, levels].
        epochs: The epoch of each value, likewise.
    """
    if not values.size:
        return values
    slope, _ = within_levels(values, epochs)
    log_epoch = np.log(epochs)
    adjusted: NDArray[np.float64] = values - slope * (log_epoch - log_epoch.mean())
    return adjusted


def within_levels(
    values: NDArray[np.float64], epochs: NDArray[np.float64]
) -> tuple[float, float]:
    """Slope and correlation of values over log epochs, all levels' means taken out."""
    if not values.size:
        return 0.0, 0.0
    x = np.log(epochs) - np.log(epochs).mean(axis=0)
    y = values - values.mean(axis=0)
    spread = float((x * x).sum())
    if spread == 0.0 or not y.any():
        return 0.0, 0.0
    product = float((x * y).sum())
    return product / spread, product / float(np.sqrt(spread * (y * y).sum()))


def _count(trends: Sequence[Trend], layer: int, direction: str) -> int:
    return sum(t.series.layer == layer and t.direction == direction for t in trends)


def _epochs_beside(runs: Sequence[Run], series: Series) -> NDArray[np.float64]:
    """The selected epochs of the runs whose values a series has."""
    (found,) = (
        other
        for other in series_of(runs, series.noise, series.tau, EPOCH)
        if other.variant == series.variant
    )
    return found.values
