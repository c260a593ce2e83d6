"""Every run, costs against scores, histograms of gates, and average ranks."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from tempergat.comparison.html_report import svg
from tempergat.comparison.report.formats import mean_and_std
from tempergat.comparison.report.tables import (
    indistinct_groups,
    interval_text,
    shown_interval,
)
from tempergat.comparison.results.result import (
    DatasetResult,
    MethodResult,
)
from tempergat.stats import RankTable
from tempergat.training import Run

# By name: the axis, the attribute of a run, and one unit of the axis in its units.
COSTS = {
    "time": ("seconds per run", "time_s", 1.0),
    "memory": ("peak memory of its group of runs (MiB)", "memory_bytes", 2.0**20),
    "parameters": ("trained parameters", "parameter_count", 1.0),
}
_STRIP_RIGHT, _STRIP_TOP, _STRIP_ROW = 74.0, 14.0, 34.0
# On a phone, where names stand above their rows.
_NARROW_LEFT, _NARROW_ROW = 14.0, 48.0
# Dots of neighbouring runs lie at different heights of a row.
_HEIGHTS = (-6.0, 3.0, -2.0, 6.0, 0.0, -4.0, 5.0)
_COST_LEFT, _COST_RIGHT, _COST_TOP, _COST_BOTTOM, _COST_HEIGHT = (
    60.0, 130.0, 34.0, 308.0, 360.0,
)  # fmt: skip
# Width of a letter of a name.
_LETTER = 7.5
_GATE_WIDTH, _GATE_HEIGHT, _GATE_TOP = 150.0, 64.0, 30.0
# From one histogram to the next, to the right and down.
_GATE_COLUMN, _GATE_ROW = 176.0, 104.0
_RANK_SIDE, _NARROW_RANK_SIDE, _RANK_AXIS, _RANK_ROW, _GROUPS_TOP, _GROUP_ROW = (
    190.0, 152.0, 46.0, 22.0, 66.0, 9.0,
)  # fmt: skip


def strips_chart(
    result: DatasetResult, baseline: str | None, width: float = svg.WIDE
) -> str:
    """Every run as a dot, with means and intervals; a row per method that has runs.

    Args:
        result: The result of one dataset.
        baseline: The method whose mean is drawn through all rows.
        width: Of the figure.
    """
    rows = [r for r in result.results if r.scores]
    is_wide = width >= svg.WIDE
    left, height = svg.NAME_WIDTH, _STRIP_ROW
    if not is_wide:
        left, height = _NARROW_LEFT, _NARROW_ROW
    bottom = _STRIP_TOP + height * len(rows)
    scores = [score for row in rows for score in row.scores.values()]
    metric = result.metric
    low, high = svg.padded(scores, within=metric.bounds)
    scale = svg.Scale(low, high, left, width - _STRIP_RIGHT)
    ticks = svg.ticks(low, high, 7 if is_wide else 4)
    drawing = svg.Drawing()
    drawing.x_axis(scale, bottom, _STRIP_TOP, ticks, f"test {metric.axis}")
    means = {row.method: row.summary.mean for row in rows}
    if baseline is not None and means.get(baseline) is not None:
        x = scale(means[baseline] or 0.0)
        drawing.line(x, _STRIP_TOP, x, bottom, "reference")
    for number, row in enumerate(rows):
        top = _STRIP_TOP + height * number
        y = top + height - _STRIP_ROW / 2
        if is_wide:
            drawing.method_name(left - 12, y + 4, row.method)
        else:
            drawing.text(left, top + 11, row.method, class_="name")
        _draw_strip(drawing, row, result, scale, y)
    return drawing.svg(
        width, bottom + 48, f"Test {metric.words} of every run by method"
    )


def _draw_strip(
    drawing: svg.Drawing,
    row: MethodResult,
    result: DatasetResult,
    scale: svg.Scale,
    y: float,
) -> None:
    metric, colour = result.metric, svg.colour_of(row.method, result.methods)
    for place, (seed, score) in enumerate(row.scores.items()):
        words = f"{row.method}, seed {seed}: {metric.text(score)}"
        dot = {"cx": scale(score), "cy": y + _HEIGHTS[place % len(_HEIGHTS)], "r": 3.0}
        drawing.add("circle", words, **dot, class_=f"dot {colour}")
    mean = row.summary.mean or 0.0
    words = f"{row.method}: mean {metric.text(mean)}"
    interval = shown_interval(row.summary, metric)
    if interval is not None:
        low, high = (scale(end) for end in interval)
        drawing.line(low, y, high, y, f"interval {colour}")
        words += f", 95 % interval {interval_text(row.summary, metric)}"
    drawing.mark(row.method, scale(mean), y, colour, words)
    drawing.text(scale.end + 12, y + 4, metric.text(mean), class_="value")


def cost_chart(
    result: DatasetResult, runs: Sequence[Run], cost: str, width: float = svg.WIDE
) -> str | None:
    """The scatter of means against one cost; None where it was not recorded.

    Args:
        result: The scores.
        runs: The runs they are from.
        cost: What is on the horizontal axis, on a logarithmic scale: a key of `COSTS`.
        width: Of the figure.
    """
    axis, attribute, unit = COSTS[cost]
    costs: dict[str, list[float]] = {}
    for run in runs:
        value = getattr(run, attribute)
        if run.status == "done" and value is not None:
            costs.setdefault(run.method, []).append(value / unit)
    means = {method: sum(values) / len(values) for method, values in costs.items()}
    shown = [
        (row, row.summary.mean, means[row.method])
        for row in result.results
        if row.summary.mean is not None and means.get(row.method, 0.0) > 0.0
    ]
    if not shown:
        return None
    left, right = svg.padded([math.log10(value) for _, _, value in shown], 0.1)
    if right - left < 0.5:
        left, right = (left + right) / 2 - 0.25, (left + right) / 2 + 0.25
    x = svg.Scale(left, right, _COST_LEFT, width - _COST_RIGHT)
    low, high = svg.padded([mean for _, mean, _ in shown], 0.1)
    y = svg.Scale(low, high, _COST_BOTTOM, _COST_TOP)
    ticks = svg.log_ticks(10.0**left, 10.0**right)
    places, numbers = map(math.log10, ticks), list(map(svg.number_text, ticks))
    metric = result.metric
    label = f"test {metric.axis}"
    drawing = svg.Drawing()
    drawing.x_axis(x, _COST_BOTTOM, _COST_TOP, list(places), axis, numbers)
    drawing.y_axis(y, _COST_LEFT, x.end, svg.ticks(low, high), label)
    marks = {}
    for row, mean, value in shown:
        marks[row.method] = (x(math.log10(value)), y(mean))
        score = mean_and_std(mean, row.summary.std, metric.digits)
        words = f"{row.method}: {score}, {value:,.3g} {axis}"
        colour = svg.colour_of(row.method, result.methods)
        drawing.mark(row.method, *marks[row.method], colour, words)
    _draw_names(drawing, marks)
    name = f"Test {metric.words} against {axis} by method"
    return drawing.svg(width, _COST_HEIGHT, name)


def _draw_names(drawing: svg.Drawing, marks: Mapping[str, tuple[float, float]]) -> None:
    """Names beside the marks, moved down where they would cover a mark or a name."""
    taken = [(x - 7, x + 7, y - 7, y + 7) for x, y in marks.values()]
    for method, (x, y) in sorted(marks.items(), key=lambda mark: mark[1][1]):
        left, right = x + 11, x + 11 + _LETTER * len(method)
        top, bottom = y - 7, y + 6
        while any(
            left < other_right
            and other_left < right
            and top < other_bottom
            and other_top < bottom
            for other_left, other_right, other_top, other_bottom in taken
        ):
            top, bottom = top + 1, bottom + 1
        taken.append((left, right, top, bottom))
        drawing.text(left, bottom - 2, method, class_="name")


def gates_chart(runs: Sequence[Run], methods: tuple[str, ...]) -> str | None:
    """Histograms of gates over nodes and channels, from closed (0) to open (1).

    There is one row per gated method and one column per layer. None where no run
    recorded its gates.

    Args:
        runs: All runs.
        methods: The methods of the report, in order.
    """
    counts: dict[str, list[Sequence[Sequence[int]]]] = {}
    for run in runs:
        if run.status == "done" and run.gate_counts:
            counts.setdefault(run.method, []).append(run.gate_counts)
    rows = [method for method in methods if method in counts]
    if not rows:
        return None
    drawing = svg.Drawing()
    for row, method in enumerate(rows):
        top = _GATE_TOP + row * _GATE_ROW
        drawing.method_name(svg.NAME_WIDTH - 14, top + _GATE_HEIGHT / 2, method)
        colour = svg.colour_of(method, methods)
        layers = np.array(counts[method], dtype=float).sum(0)
        for layer, columns in enumerate(layers):
            left = svg.NAME_WIDTH + layer * _GATE_COLUMN
            if row == 0:
                drawing.text(left, 16, f"layer {layer + 1}", class_="name strong")
            _draw_histogram(drawing, columns / columns.sum(), left, top, colour)
    most_layers = max(len(counts[method][0]) for method in rows)
    width = svg.NAME_WIDTH + most_layers * _GATE_COLUMN
    height = _GATE_TOP + len(rows) * _GATE_ROW
    return drawing.svg(width, height, "Histograms of gates by method and layer")


def _draw_histogram(
    drawing: svg.Drawing, shares: np.ndarray, left: float, top: float, colour: str
) -> None:
    bottom = top + _GATE_HEIGHT
    x = svg.Scale(0.0, 1.0, left, left + _GATE_WIDTH)
    y = svg.Scale(0.0, float(shares.max()), bottom, top)
    drawing.x_axis(x, bottom, bottom, [0.0, 0.5, 1.0])
    drawing.line(left, bottom, left + _GATE_WIDTH, bottom, "grid")
    width = _GATE_WIDTH / len(shares)
    for place, share in enumerate(shares.tolist()):
        low, high = place / len(shares), (place + 1) / len(shares)
        words = f"{100 * share:.1f} % of gates from {low:g} to {high:g}"
        drawing.add(
            "rect", words, x=left + place * width + 0.5, y=y(share),
            width=width - 1, height=bottom - y(share), class_=f"bar {colour}",
        )  # fmt: skip


def ranks_chart(table: RankTable, width: float = svg.WIDE) -> str:
    """The methods on an axis of average ranks, with the critical difference.

    A bar joins methods whose average ranks differ by less than the critical difference.

    Args:
        table: Average ranks, best first.
        width: Of the figure.
    """
    methods = tuple(table.average)
    is_wide = width >= svg.WIDE
    side = _RANK_SIDE if is_wide else _NARROW_RANK_SIDE
    x = svg.Scale(1.0, float(max(len(methods), 2)), side, width - side)
    axis = _RANK_AXIS
    drawing = svg.Drawing()
    drawing.line(x.start, axis, x.end, axis, "axis")
    for tick in range(1, len(methods) + 1, math.ceil(16 / (x(2.0) - x(1.0)))):
        drawing.line(x(tick), axis - 5, x(tick), axis, "axis")
        drawing.text(x(tick), axis - 10, str(tick), class_="tick middle")
    reach = min(x.end, x.start + (x(1.0 + table.critical_difference) - x(1.0)))
    words = f"critical difference {table.critical_difference:.2f}"
    bar = 12 if is_wide else 20
    drawing.line(x.start, bar, reach, bar, "interval c0")
    if is_wide:
        drawing.text(reach + 8, 16, words, class_="tick")
    else:
        drawing.text(width / 2, 11, words, class_="tick middle")
    groups = indistinct_groups(table)
    for number, (first, last) in enumerate(groups):
        y = _GROUPS_TOP - 8 + number * _GROUP_ROW
        drawing.line(x(first) - 4, y, x(last) + 4, y, "group")
    top = _GROUPS_TOP + len(groups) * _GROUP_ROW + 6
    half = (len(methods) + 1) // 2
    for number, (method, rank) in enumerate(table.average.items()):
        is_left = number < half
        y = top + (number if is_left else len(methods) - 1 - number) * _RANK_ROW
        end = x.start - 14 if is_left else x.end + 14
        path = svg.path_of([(x(rank), axis), (x(rank), y), (end, y)])
        colour = svg.colour_of(method, methods)
        drawing.add("path", d=path, class_=f"thin {colour}")
        drawing.add("circle", cx=x(rank), cy=axis, r=4.0, class_=f"mark {colour}")
        if is_left:
            drawing.text(end - 6, y + 4, f"{method} {rank:.2f}", class_="name end")
        else:
            drawing.text(end + 6, y + 4, f"{rank:.2f} {method}", class_="name")
    name = "Average ranks with critical difference"
    return drawing.svg(width, top + half * _RANK_ROW, name)
