"""Every run of every method as a dot, with the mean and its interval."""

from tempergat.comparison.html_report import marks, svg
from tempergat.comparison.report.tables import interval_text, shown_interval
from tempergat.comparison.report.words import percent
from tempergat.comparison.results import METRIC_NAMES, DatasetResult, MethodResult

_WIDTH, _LEFT, _RIGHT, _TOP, _ROW, _BELOW = 760.0, 150.0, 74.0, 14.0, 34.0, 48.0
# Dots of neighbouring runs lie at different heights of a row.
_HEIGHTS = (-6.0, 3.0, -2.0, 6.0, 0.0, -4.0, 5.0)


def strips_chart(result: DatasetResult, baseline: str | None) -> str:
    """The strips, one row per method that has finished runs.

    Args:
        result: The result of one dataset.
        baseline: The method whose mean is drawn through all rows.
    """
    rows = [r for r in result.results if r.scores]
    bottom = _TOP + _ROW * len(rows)
    scores = [score for row in rows for score in row.scores.values()]
    low, high = svg.padded(scores, within=(0.0, 100.0))
    scale = svg.Scale(low, high, _LEFT, _WIDTH - _RIGHT)
    metric = METRIC_NAMES[result.metric]
    parts = svg.x_axis(
        scale, bottom, _TOP, svg.ticks(low, high, 7), f"test {metric} (%)"
    )
    means = {row.method: row.summary.mean for row in rows}
    if baseline is not None and means.get(baseline) is not None:
        x = scale(means[baseline] or 0.0)
        parts.append(svg.line(x, _TOP, x, bottom, "reference"))
    for number, row in enumerate(rows):
        parts += _strip(row, result, scale, _TOP + _ROW * (number + 0.5))
    return svg.drawing(
        _WIDTH, bottom + _BELOW, f"Test {metric} of every run by method", parts
    )


def _strip(
    row: MethodResult, result: DatasetResult, scale: svg.Scale, y: float
) -> list[str]:
    colour = marks.colour_of(row.method, result.methods)
    parts = [svg.method_name(_LEFT - 12, y + 4, row.method)]
    for place, (seed, score) in enumerate(row.scores.items()):
        parts.append(
            svg.element(
                "circle",
                svg.title(f"{row.method}, seed {seed}: {percent(score)}"),
                cx=scale(score),
                cy=y + _HEIGHTS[place % len(_HEIGHTS)],
                r=3.0,
                class_=f"dot {colour}",
            )
        )
    interval = shown_interval(row.summary, result.splits)
    if interval is not None:
        low, high = (scale(end) for end in interval)
        parts.append(svg.line(low, y, high, y, f"interval {colour}"))
    mean = row.summary.mean or 0.0
    words = f"{row.method}: mean {percent(mean)}"
    if interval is not None:
        words += f", 95 % interval {interval_text(row.summary, result.splits)}"
    parts.append(marks.mark(row.method, scale(mean), y, colour, words))
    parts.append(svg.text(_WIDTH - _RIGHT + 12, y + 4, percent(mean), class_="value"))
    return parts
