"""Differences to the baseline by method and graph."""

from collections.abc import Mapping

from tempergat.comparison.html_report import svg
from tempergat.comparison.report.words import p_value, signed
from tempergat.comparison.results import DatasetResult

_LEFT, _TOP, _CELL_WIDTH, _CELL = 150.0, 34.0, 96.0, 34.0
_LONGEST_NAME = 14


def heat_map(results: Mapping[str, DatasetResult]) -> str | None:
    """One row per compared method, one column per graph; None without comparisons.

    Gains are in one colour and losses in another; a star marks those whose corrected
    p-value is below 0.05.

    Args:
        results: The result of each graph, by the name to show.
    """
    methods = list(
        dict.fromkeys(
            row.method
            for result in results.values()
            for row in result.results
            if row.comparison is not None
        )
    )
    if not methods:
        return None
    largest = max(
        abs(row.comparison.difference or 0.0)
        for result in results.values()
        for row in result.results
        if row.comparison is not None
    )
    parts = []
    for column, name in enumerate(results):
        x = _LEFT + (column + 0.5) * _CELL_WIDTH
        parts.append(
            svg.text(
                x, _TOP - 10, svg.shortened(name, _LONGEST_NAME), class_="name middle"
            )
        )
    for row, method in enumerate(methods):
        y = _TOP + row * _CELL
        parts.append(svg.method_name(_LEFT - 12, y + 21, method))
        for column, result in enumerate(results.values()):
            if method in result.methods:
                x = _LEFT + column * _CELL_WIDTH
                parts.append(_cell(x, y, result, method, largest))
    width = _LEFT + len(results) * _CELL_WIDTH + 6
    height = _TOP + len(methods) * _CELL + 6
    return svg.drawing(
        width, height, "Difference to the baseline by method and graph", parts
    )


def _cell(
    x: float, y: float, result: DatasetResult, method: str, largest: float
) -> str:
    comparison = result[method].comparison
    if comparison is None or comparison.difference is None:
        return ""
    difference = comparison.difference
    is_clear = comparison.verdict in ("better", "worse")
    words = (
        f"{method} on {result.dataset}: {signed(difference)} points against "
        f"{comparison.baseline}, p {p_value(comparison.t_p_holm)}, {comparison.verdict}"
    )
    strength = abs(difference) / largest if largest else 0.0
    square = svg.element(
        "rect", svg.title(words),
        x=x + 1.0, y=y + 1.0, width=_CELL_WIDTH - 2, height=_CELL - 2, rx=3,
        class_="gain" if difference > 0 else "loss",
        fill_opacity=0.05 + 0.6 * strength,
    )  # fmt: skip
    star = " *" if is_clear else ""
    weight = " strong" if is_clear else ""
    return square + svg.text(
        x + _CELL_WIDTH / 2, y + 21, signed(difference) + star,
        class_=f"value middle{weight}", pointer_events="none",
    )  # fmt: skip
