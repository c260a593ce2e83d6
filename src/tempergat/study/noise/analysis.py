"""Trends with the noise on one dataset, each tested."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tempergat.nn import BACKBONES, METHODS
from tempergat.study.noise.moment_columns import SELECTED, Moment
from tempergat.study.noise.plan import NoisePlan
from tempergat.study.noise.trends import Series, Trend, series_of, trends_of
from tempergat.study.noise.variants import decays_temperature
from tempergat.training import Run


@dataclass(frozen=True)
class DatasetNoise:
    """The trends on one dataset.

    Attributes:
        runs: Its runs, in the order of the plan's methods.
        expected_runs: How many runs the plan asks for.
        temperature: Trends of T with sigma, by layer and tempered variant, at the
            selected epoch.
        gate: Trends of the mean gate with rho, by tau, layer and gated variant,
            likewise.
        last_temperature: Trends of T at the last epoch; none in runs without records
            of it.
        last_gate: Trends of the mean gate at the last epoch, likewise.
        entropy: Trends of the relative attention entropy with sigma, by layer and
            variant, plain ones included.
        spread: Trends of the spread of e/T, likewise.
    """

    dataset: str
    runs: Sequence[Run]
    expected_runs: int
    temperature: list[Trend]
    gate: list[Trend]
    last_temperature: list[Trend]
    last_gate: list[Trend]
    entropy: list[Trend]
    spread: list[Trend]

    @property
    def is_complete(self) -> bool:
        """Whether no run of the plan is missing."""
        return len(self.runs) >= self.expected_runs

    @property
    def sentence(self) -> str:
        """The main findings in one line."""
        if self.last_temperature or self.last_gate:
            trends = self.last_temperature, self.last_gate
            moment = "last"
        else:
            trends = self.temperature, self.gate
            moment = "selected"
        rising = sum(trend.direction == "rises" for trend in trends[0])
        falling = sum(trend.direction == "falls" for trend in trends[1])
        return (
            f"{self.dataset}: {len(self.runs)} of {self.expected_runs} runs; at the "
            f"{moment} epoch T rises with sigma in {rising} of {len(trends[0])} layers "
            f"and variants, the gate falls with rho in {falling} of {len(trends[1])}"
        )

    def last_beside(self, trend: Trend) -> Trend | None:
        """The trend of T at the last epoch, in the same variant and layer."""
        for other in self.last_temperature:
            if _same_place(other, trend):
                return other
        return None

    def entropy_beside(self, trend: Trend) -> Trend:
        """The entropy's trend in the variant and layer of a temperature's trend."""
        return next(other for other in self.entropy if _same_place(other, trend))


def _same_place(one: Trend, other: Trend) -> bool:
    places = [(trend.series.variant, trend.series.layer) for trend in (one, other)]
    return places[0] == places[1]


def analyse(runs: Sequence[Run], plan: NoisePlan) -> DatasetNoise:
    """Test all trends of one dataset; each quantity is one Holm family."""
    places = {method: place for place, method in enumerate(plan.methods)}
    runs = sorted(
        (run for run in runs if run.method in places),
        key=lambda run: (decays_temperature(run) is False, places[run.method]),
    )

    def family(
        quantity: str,
        noise: str,
        taus: Sequence[float | None],
        moment: Moment = SELECTED,
    ) -> list[Trend]:
        found: list[Series] = []
        for tau in taus:
            found += series_of(runs, noise, tau, quantity, _has(quantity), moment)
        return trends_of(found)

    tempered = [m for m in plan.methods if METHODS[m].temperature is not None]
    variants = len(plan.methods) + len(tempered) * (len(plan.decay_temperature) - 1)
    return DatasetNoise(
        dataset=runs[0].dataset,
        runs=runs,
        expected_runs=variants * len(plan.conditions) * plan.seeds,
        temperature=family("temperature", "gaussian", [None]),
        gate=family("gate", "missing", plan.tau),
        last_temperature=family("temperature", "gaussian", [None], "last_epoch"),
        last_gate=family("gate", "missing", plan.tau, "last_epoch"),
        entropy=family("entropy", "gaussian", [None]),
        spread=family("spread", "gaussian", [None]),
    )


def _has(quantity: str) -> Callable[[str], bool]:
    """Whether a method has a quantity."""

    def has(method: str) -> bool:
        known = METHODS[method]
        if quantity == "temperature":
            return known.temperature is not None
        if quantity == "gate":
            return known.gate is not None
        return BACKBONES[known.backbone].has_attention

    return has


def end_of(trend: Trend) -> str:
    """Whether a value is `higher` or `lower` at the highest level than at level 0.

    `neither` where the 95 % interval of the change, which is not corrected, contains 0.
    """
    low, high = trend.change.low, trend.change.high
    if low is not None and low > 0:
        return "higher"
    return "lower" if high is not None and high < 0 else "neither"


def as_json(found: Sequence[DatasetNoise]) -> list[dict[str, Any]]:
    """The trends as plain JSON values."""
    return [
        {
            "dataset": dataset.dataset,
            "runs": len(dataset.runs),
            "expected_runs": dataset.expected_runs,
            "trends": [
                {
                    "quantity": trend.series.quantity,
                    "variant": trend.series.variant,
                    "layer": trend.series.layer,
                    "moment": trend.series.moment,
                    "noise": trend.series.noise,
                    "tau": trend.series.tau,
                    "first": trend.first,
                    "last": trend.last,
                    "change": trend.change.mean,
                    "change_low": trend.change.low,
                    "change_high": trend.change.high,
                    "p_holm": trend.p_holm,
                    "direction": trend.direction,
                    "lost_seeds": trend.series.lost_seeds,
                }
                for trend in (
                    *dataset.temperature,
                    *dataset.gate,
                    *dataset.last_temperature,
                    *dataset.last_gate,
                    *dataset.spread,
                    *dataset.entropy,
                )
            ],
        }
        for dataset in found
    ]
