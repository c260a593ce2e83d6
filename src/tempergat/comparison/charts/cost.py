"""What a method costs against what it scores."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tempergat.comparison.html_report import marks, svg
from tempergat.comparison.report.words import mean_and_std
from tempergat.comparison.results import METRIC_NAMES, DatasetResult
from tempergat.training import Run

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BELOW = 760.0, 360.0, 60.0, 130.0, 34.0, 52.0
# Width of a letter of a name.
_LETTER = 7.5


@dataclass(frozen=True)
class Cost:
    """One of the costs that can be put on the axis.

    Attributes:
        name: In the button that chooses it.
        axis: The name of the axis.
        field: The attribute of a run.
        unit: What one unit of the axis is in units of the attribute.
    """

    name: str
    axis: str
    field: str
    unit: float = 1.0


COSTS = (
    Cost("time", "seconds per run", "time_s"),
    Cost("memory", "peak memory of its group of runs (MiB)", "memory_bytes", 2.0**20),
    Cost("parameters", "trained parameters", "parameter_count"),
)


def cost_chart(result: DatasetResult, runs: Sequence[Run], cost: Cost) -> str | None:
    """The scatter of means against one cost; None where it was not recorded.

    Args:
        result: The scores.
        runs: The runs they are from.
        cost: What is on the horizontal axis, on a logarithmic scale.
    """
    costs = _mean_costs(runs, cost)
    shown = [
        (row, costs[row.method])
        for row in result.results
        if row.summary.mean is not None and costs.get(row.method, 0.0) > 0.0
    ]
    if not shown:
        return None
    x = _log_scale([value for _, value in shown])
    low, high = svg.padded([row.summary.mean or 0.0 for row, _ in shown], 0.1)
    y = svg.Scale(low, high, _HEIGHT - _BELOW, _TOP)
    metric = METRIC_NAMES[result.metric]
    lowest, highest = 10.0**x.low, 10.0**x.high
    parts = [
        *_log_axis(x, lowest, highest, cost.axis),
        *svg.y_axis(
            y, _LEFT, _WIDTH - _RIGHT, svg.ticks(low, high), f"test {metric} (%)"
        ),
    ]
    places = []
    for row, value in shown:
        mean = row.summary.mean or 0.0
        place = (x(math.log10(value)), y(mean))
        places.append((place, row.method))
        words = (
            f"{row.method}: {mean_and_std(mean, row.summary.std)}, "
            f"{value:,.3g} {cost.axis}"
        )
        colour = marks.colour_of(row.method, result.methods)
        parts.append(marks.mark(row.method, *place, colour, words))
    parts += _names(places)
    return svg.drawing(
        _WIDTH, _HEIGHT, f"Test {metric} against {cost.axis} by method", parts
    )


def _mean_costs(runs: Sequence[Run], cost: Cost) -> Mapping[str, float]:
    found: dict[str, list[float]] = {}
    for run in runs:
        value = getattr(run, cost.field)
        if run.status == "done" and value is not None:
            found.setdefault(run.method, []).append(value / cost.unit)
    return {method: sum(values) / len(values) for method, values in found.items()}


def _log_scale(values: Sequence[float]) -> svg.Scale:
    low, high = svg.padded([math.log10(value) for value in values], 0.1)
    if high - low < 0.5:
        low, high = (low + high) / 2 - 0.25, (low + high) / 2 + 0.25
    return svg.Scale(low, high, _LEFT, _WIDTH - _RIGHT)


def _log_axis(x: svg.Scale, low: float, high: float, label: str) -> list[str]:
    parts = []
    bottom = _HEIGHT - _BELOW
    for value in svg.log_ticks(low, high):
        place = x(math.log10(value))
        parts.append(svg.line(place, _TOP, place, bottom, "grid"))
        parts.append(
            svg.text(place, bottom + 16, svg.number_text(value), class_="tick middle")
        )
    middle = (x.start + x.end) / 2
    return [*parts, svg.text(middle, bottom + 36, label, class_="label middle")]


def _names(places: Sequence[tuple[tuple[float, float], str]]) -> list[str]:
    """Names beside the marks, moved down where they would cover a mark or a name."""
    parts = []
    taken = [_Box(x - 7, x + 7, y - 7, y + 7) for (x, y), _ in places]
    for (x, y), method in sorted(places, key=lambda place: place[0][1]):
        left = x + 11
        box = _Box(left, left + _LETTER * len(method), y - 7, y + 6)
        while any(box.meets(other) for other in taken):
            box = replace(box, top=box.top + 1, bottom=box.bottom + 1)
        taken.append(box)
        parts.append(svg.text(left, box.bottom - 2, method, class_="name"))
    return parts


@dataclass(frozen=True)
class _Box:
    """The place that a mark or a name takes."""

    left: float
    right: float
    top: float
    bottom: float

    def meets(self, other: "_Box") -> bool:
        """Whether both cover a common point."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )
