"""Small panels side by side, each with lines and bands over epochs."""

from collections.abc import Sequence
from dataclasses import dataclass

from tempergat.study.html_report import svg

_PANEL, _GAP, _LEFT, _TOP, _HEIGHT, _BELOW = 300.0, 56.0, 44.0, 44.0, 180.0, 48.0
_LEGEND_ROW, _LEGEND_COLUMN, _COLUMNS = 20.0, 150.0, 3
DASHES = ("", "7 3", "2 3", "9 3 2 3", "5 2 1 2 1 2")


@dataclass(frozen=True)
class Line:
    """One method's values over epochs.

    Attributes:
        name: The method.
        colour: Class of its colour.
        dash: SVG's `stroke-dasharray`.
        epochs: Epochs, from 1.
        middle: The mean over runs at each epoch.
        low: The lower edge of the band.
        high: Its upper edge.
    """

    name: str
    colour: str
    dash: str
    epochs: Sequence[int]
    middle: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


@dataclass(frozen=True)
class Panel:
    """A panel's title and its lines."""

    title: str
    lines: Sequence[Line]


def panels_chart(panels: Sequence[Panel], name: str, label: str) -> str:
    """Panels with one vertical axis, and the legend below them.

    Args:
        panels: From left to right, at most three in a row.
        name: What the figure shows, for screen readers.
        label: The name of the vertical axis.
    """
    values = [
        value
        for panel in panels
        for line in panel.lines
        for edge in (line.low, line.high)
        for value in edge
    ]
    low, high = svg.padded(values)
    columns = min(len(panels), _COLUMNS)
    rows = -(-len(panels) // _COLUMNS)
    parts = []
    for number, panel in enumerate(panels):
        x = _LEFT + (number % _COLUMNS) * (_PANEL + _GAP)
        y = _TOP + (number // _COLUMNS) * (_HEIGHT + _BELOW + _TOP)
        parts += _panel(panel, x, y, (low, high), label)
    below = rows * (_TOP + _HEIGHT + _BELOW) + 14
    width = _LEFT + columns * _PANEL + (columns - 1) * _GAP + 18
    legend, height = _legend(panels, below, width)
    return svg.drawing(width, below + height, name, [*parts, *legend])


def _panel(
    panel: Panel, left: float, top: float, ends: tuple[float, float], label: str
) -> list[str]:
    epochs = [epoch for line in panel.lines for epoch in line.epochs]
    x = svg.Scale(min(epochs), max(epochs), left, left + _PANEL)
    y = svg.Scale(*ends, top + _HEIGHT, top)
    bottom = top + _HEIGHT
    parts = [
        svg.text(left, top - 26, panel.title, class_="name strong"),
        *svg.x_axis(x, bottom, top, _whole_ticks(x.low, x.high), "epoch"),
        *svg.y_axis(y, left, left + _PANEL, svg.ticks(*ends, 4), label),
    ]
    for line in panel.lines:
        upper = [(x(e), y(v)) for e, v in zip(line.epochs, line.high, strict=True)]
        lower = [(x(e), y(v)) for e, v in zip(line.epochs, line.low, strict=True)]
        parts.append(
            svg.element(
                "path",
                d=svg.path_of([*upper, *reversed(lower)]) + "Z",
                class_=f"band {line.colour}",
            )
        )
    for line in panel.lines:
        middle = [(x(e), y(v)) for e, v in zip(line.epochs, line.middle, strict=True)]
        parts.append(
            svg.element(
                "path",
                svg.title(f"{line.name}: {line.middle[-1]:.3g} at the last epoch"),
                d=svg.path_of(middle),
                class_=f"line {line.colour}",
                stroke_dasharray=line.dash or "none",
            )
        )
    return parts


def _whole_ticks(low: float, high: float) -> list[float]:
    """About four whole numbers from `low` to `high`."""
    return [tick for tick in svg.ticks(low, high, 4) if tick == round(tick)]


def _legend(
    panels: Sequence[Panel], top: float, width: float
) -> tuple[list[str], float]:
    lines = {line.name: line for panel in panels for line in panel.lines}
    per_row = max(1, int((width - _LEFT) // _LEGEND_COLUMN))
    parts = []
    for number, line in enumerate(lines.values()):
        x = _LEFT + (number % per_row) * _LEGEND_COLUMN
        y = top + (number // per_row) * _LEGEND_ROW
        parts.append(
            svg.element(
                "path",
                d=svg.path_of([(x, y), (x + 30, y)]),
                class_=f"line {line.colour}",
                stroke_dasharray=line.dash or "none",
            )
        )
        parts.append(svg.text(x + 38, y + 4, line.name, class_="name"))
    return parts, -(-len(lines) // per_row) * _LEGEND_ROW
