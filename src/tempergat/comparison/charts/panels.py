"""Small panels side by side, each with lines and bands."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tempergat.comparison.html_report import svg

_PANEL, _GAP, _LEFT, _TOP, _HEIGHT, _BELOW = 300.0, 56.0, 44.0, 44.0, 180.0, 48.0
_LEGEND_ROW, _LEGEND_COLUMN = 20.0, 150.0
# Width of a letter of the legend, and of the line before it.
_LETTER, _SAMPLE = 7.5, 50.0
DASHES = ("", "7 3", "2 3", "9 3 2 3", "5 2 1 2 1 2")


@dataclass(frozen=True)
class Line:
    """One method's values over epochs or noise levels.

    Attributes:
        name: The method.
        colour: Class of its colour.
        dash: SVG's `stroke-dasharray`.
        at: Where the values are: epochs, or the places of noise levels.
        middle: The mean over runs at each of them.
        low: The lower edge of the band.
        high: Its upper edge.
    """

    name: str
    colour: str
    dash: str
    at: Sequence[float]
    middle: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


@dataclass(frozen=True)
class Across:
    """The horizontal axis of a panel.

    Attributes:
        label: Its name.
        ticks: Words by their places; whole numbers when left out.
    """

    label: str = "epoch"
    ticks: Mapping[float, str] | None = None


@dataclass(frozen=True)
class Panel:
    """A panel's title, its lines and its horizontal axis."""

    title: str
    lines: Sequence[Line]
    across: Across = Across()


def panels_chart(
    panels: Sequence[Panel],
    name: str,
    label: str,
    lowest: float | None = None,
) -> str:
    """Panels with one vertical axis, and the legend below them.

    Args:
        panels: From left to right, three in a row, or two where there are four.
        name: What the figure shows, for screen readers.
        label: The name of the vertical axis.
        lowest: Where the vertical axis begins; lines are cut there. The least value
            when left out.
    """
    values = [
        value
        for panel in panels
        for line in panel.lines
        for edge in (line.low, line.high)
        for value in edge
    ]
    low, high = svg.padded(values)
    low = low if lowest is None else lowest
    columns = 2 if len(panels) == 4 else min(len(panels), 3)
    rows = -(-len(panels) // columns)
    parts = []
    for number, panel in enumerate(panels):
        x = _LEFT + (number % columns) * (_PANEL + _GAP)
        y = _TOP + (number // columns) * (_HEIGHT + _BELOW + _TOP)
        scale = svg.Scale(low, high, y + _HEIGHT, y)
        parts += _panel(panel, x, scale, label)
    below = rows * (_TOP + _HEIGHT + _BELOW) + 14
    width = _LEFT + columns * _PANEL + (columns - 1) * _GAP + 18
    legend, height = _legend(panels, below, width)
    return svg.drawing(width, below + height, name, [*parts, *legend])


def _panel(panel: Panel, left: float, y: svg.Scale, label: str) -> list[str]:
    places = [place for line in panel.lines for place in line.at]
    x = svg.Scale(min(places), max(places), left, left + _PANEL)
    ticks = panel.across.ticks or {
        tick: svg.number_text(tick) for tick in _whole_ticks(x.low, x.high)
    }
    parts = [
        svg.text(left, y.end - 26, panel.title, class_="name strong"),
        *svg.x_axis(
            x, y.start, y.end, list(ticks), panel.across.label, list(ticks.values())
        ),
        *svg.y_axis(y, left, left + _PANEL, svg.ticks(y.low, y.high, 4), label),
    ]
    for line in panel.lines:
        upper, lower = (
            [(x(at), y(max(v, y.low))) for at, v in zip(line.at, edge, strict=True)]
            for edge in (line.high, line.low)
        )
        parts.append(
            svg.element(
                "path",
                d=svg.path_of([*upper, *reversed(lower)]) + "Z",
                class_=f"band {line.colour}",
            )
        )
    for line in panel.lines:
        drawn = "".join(
            svg.path_of([(x(at), y(value)) for at, value in piece])
            for piece in _above(list(zip(line.at, line.middle, strict=True)), y.low)
        )
        parts.append(
            svg.element(
                "path",
                svg.title(f"{line.name}: {line.middle[-1]:.3g} at the end"),
                d=drawn,
                class_=f"line {line.colour}",
                stroke_dasharray=line.dash or "none",
            )
        )
    return parts


def _above(
    points: Sequence[tuple[float, float]], low: float
) -> Iterator[list[tuple[float, float]]]:
    """The pieces of a line that are not below `low`."""
    piece = [points[0]] if points[0][1] >= low else []
    for (x0, y0), (x1, y1) in pairwise(points):
        if (y0 < low) != (y1 < low):
            piece.append((x0 + (x1 - x0) * (low - y0) / (y1 - y0), low))
        if y1 >= low:
            piece.append((x1, y1))
        elif piece:
            yield piece
            piece = []
    if piece:
        yield piece


def _whole_ticks(low: float, high: float) -> list[float]:
    """About four whole numbers from `low` to `high`."""
    return [tick for tick in svg.ticks(low, high, 4) if tick == round(tick)]


def _legend(
    panels: Sequence[Panel], top: float, width: float
) -> tuple[list[str], float]:
    lines = {line.name: line for panel in panels for line in panel.lines}
    column = max(_LEGEND_COLUMN, _SAMPLE + _LETTER * max(map(len, lines)))
    per_row = max(1, int((width - _LEFT) // column))
    parts = []
    for number, line in enumerate(lines.values()):
        x = _LEFT + (number % per_row) * column
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
