"""Values over epochs: learning curves, temperatures and gates, in panels with bands."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np

from tempergat.comparison.html_report import svg
from tempergat.nn import METHODS
from tempergat.training import Metric, Run

# By the attribute of a `LayerRecord`: the figure's title and its axis.
LEARNED = {
    "temperatures": ("Temperatures while training", "temperature"),
    "gate_means": ("Mean gates while training", "mean gate"),
}
_DASHES = ("", "7 3", "2 3", "9 3 2 3", "5 2 1 2 1 2")
_OTHER_METHODS = "other methods"
_GAP, _LEFT, _TOP, _BELOW = 56.0, 44.0, 44.0, 48.0
# Panels in a row, the width of each and its height.
_LARGE, _SMALL = (3, 300.0, 180.0), (4, 190.0, 120.0)
_NARROW_LARGE, _NARROW_SMALL = (1, 318.0, 180.0), (2, 132.0, 110.0)
# A panel with more lines is divided into panels of one method each.
_MOST_LINES = 3
_BACKBONE = "its backbone"
_LEGEND_ROW, _LEGEND_COLUMN = 20.0, 150.0
# Width of a letter of the legend, and of the line before it.
_LETTER, _SAMPLE = 7.5, 50.0

# A run's values by epoch; empty where it recorded none.
ValuesOfRun = Callable[[Run], Mapping[int, float]]


@dataclass(frozen=True)
class Line:
    """One method's values over epochs.

    Attributes:
        name: The method.
        colour: Class of its colour.
        dash: SVG's `stroke-dasharray`.
        epochs: Where the values are.
        mean: The mean over runs at each of them.
        low: The lower edge of the band.
        high: Its upper edge.
    """

    name: str
    colour: str
    dash: str
    epochs: Sequence[int]
    mean: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]

    @property
    def look(self) -> dict[str, str]:
        """The attributes of a path in its colour and its dashes."""
        return {
            "class_": f"line {self.colour}",
            "stroke_dasharray": self.dash or "none",
        }


def curves_chart(
    runs: Sequence[Run],
    methods: tuple[str, ...],
    metric: Metric,
    width: float = svg.WIDE,
) -> str | None:
    """Validation scores, with a panel for each backbone; None where none was recorded.

    Where a backbone has many methods, every method has a panel, with a thin line for
    its backbone.

    Args:
        runs: All runs.
        methods: The methods of the report, in order.
        metric: The metric.
        width: Of the page.
    """
    by_backbone: dict[str, list[Line]] = {}
    for line in lines_of(runs, methods, partial(_validation, metric)):
        known = METHODS.get(line.name)
        backbone = known.backbone if known else _OTHER_METHODS
        by_backbone.setdefault(backbone, []).append(line)
    if not by_backbone:
        return None
    panels = {}
    for backbone, lines in by_backbone.items():
        names = {line.name for line in lines}
        title = backbone
        if backbone != _OTHER_METHODS and names != {backbone}:
            title = f"variants of {backbone}"
            if backbone in names:
                title = f"{backbone} and its variants"
        panels[title] = lines
    lines = [line for lines in panels.values() for line in lines]
    sizes = (_LARGE, _NARROW_LARGE)
    if max(map(len, panels.values())) > _MOST_LINES:
        sizes = (_SMALL, _NARROW_SMALL)
        panels = {line.name: _with_backbone(line, lines) for line in lines}
    return _panels_chart(
        panels,
        f"Validation {metric.words} over epochs by method",
        f"validation {metric.axis}",
        sizes[width < svg.WIDE],
        lowest=max(_lowest(lines), metric.bounds[0]),
    )


def _with_backbone(line: Line, lines: Sequence[Line]) -> list[Line]:
    """A method's line, solid, over a grey one of its backbone without a band."""
    known = METHODS.get(line.name)
    other = [one for one in lines if known and one.name == known.backbone != line.name]
    below = [
        replace(b, name=_BACKBONE, colour="c0", dash="4 3", low=b.mean, high=b.mean)
        for b in other
    ]
    return [*below, replace(line, dash="")]


def learned_chart(
    runs: Sequence[Run],
    methods: tuple[str, ...],
    what: str,
    width: float = svg.WIDE,
) -> str | None:
    """Learned values, with a panel for each layer; None where no run recorded them.

    Args:
        runs: All runs.
        methods: The methods of the report, in order.
        what: A key of `LEARNED`.
        width: Of the page.
    """
    panels: dict[str, list[Line]] = {}
    while lines := lines_of(runs, methods, partial(_learned, what, len(panels))):
        panels[f"layer {len(panels) + 1}"] = lines
    title, label = LEARNED[what]
    size = _LARGE if width >= svg.WIDE else _NARROW_LARGE
    return _panels_chart(panels, title, label, size) if panels else None


def _validation(metric: Metric, run: Run) -> Mapping[int, float]:
    curves = run.curves or {}
    if "epoch" not in curves or "val" not in curves:
        return {}
    return {
        int(epoch): metric.shown(value)
        for epoch, value in zip(curves["epoch"], curves["val"], strict=True)
    }


def _learned(what: str, layer: int, run: Run) -> Mapping[int, float]:
    by_epoch = {
        epoch: getattr(record, what)
        for epoch, record in (run.layers_at_epochs or {}).items()
    }
    return {
        epoch: values[layer]
        for epoch, values in by_epoch.items()
        if layer < len(values)
    }


def lines_of(
    runs: Sequence[Run], methods: tuple[str, ...], values_of: ValuesOfRun
) -> list[Line]:
    """One line per method: the mean of its runs and a band of one deviation.

    Only epochs at which every run of the method has a value are in its line. A method
    with fewer than two of them has no line.

    Args:
        runs: Runs of any methods; failed ones are left out.
        methods: All methods of the report, in order.
        values_of: Gives a run's values.
    """
    lines = []
    used: dict[str, int] = {}
    for method in methods:
        of_method = [r for r in runs if r.method == method and r.status == "done"]
        recorded = [values for run in of_method if (values := values_of(run))]
        epochs = sorted(set.intersection(*map(set, recorded))) if recorded else []
        # One epoch alone gives no line.
        if len(epochs) < 2:
            continue
        colour = svg.colour_of(method, methods)
        dash = _DASHES[used.setdefault(colour, 0) % len(_DASHES)]
        used[colour] += 1
        table = np.array([[values[epoch] for epoch in epochs] for values in recorded])
        # The sample's deviation, as in the tables.
        mean, std = table.mean(0), table.std(0, ddof=1 if len(table) > 1 else 0)
        low, high = (mean - std).tolist(), (mean + std).tolist()
        lines.append(Line(method, colour, dash, epochs, mean.tolist(), low, high))
    return lines


def _lowest(lines: Sequence[Line]) -> float:
    """Where the axis begins: near the least value after the first tenth of the epochs.

    The first epochs are far below all others, which would be squeezed to one line.
    """
    start = 0.1 * max(epoch for line in lines for epoch in line.epochs)
    low = min(
        value
        for line in lines
        for epoch, value in zip(line.epochs, line.low, strict=True)
        if epoch >= start
    )
    high = max(value for line in lines for value in line.high)
    return low - 0.05 * (high - low)


def _panels_chart(
    panels: Mapping[str, Sequence[Line]],
    name: str,
    label: str,
    size: tuple[int, float, float],
    lowest: float | None = None,
) -> str:
    """Panels with one vertical axis, and the legend below them.

    Args:
        panels: Lines by the panel's title, from left to right.
        name: What the figure shows, for screen readers.
        label: The name of the vertical axis.
        size: Panels in a row at most, the width of each and its height.
        lowest: Where the vertical axis begins; lines are cut there. The least value
            when left out.
    """
    every = [line for lines in panels.values() for line in lines]
    edges = [edge for line in every for edge in (line.low, line.high)]
    low, high = svg.padded([value for edge in edges for value in edge])
    low = low if lowest is None else lowest
    most, panel, tall = size
    columns = 2 if len(panels) == 4 and most == 3 else min(len(panels), most)
    rows = -(-len(panels) // columns)
    drawing = svg.Drawing()
    for number, (title, lines) in enumerate(panels.items()):
        x = _LEFT + (number % columns) * (panel + _GAP)
        y = _TOP + (number // columns) * (tall + _BELOW + _TOP)
        scale = svg.Scale(low, high, y + tall, y)
        _draw_panel(drawing, title, lines, (x, x + panel), scale, label)
    below = rows * (_TOP + tall + _BELOW) + 14
    width = _LEFT + columns * panel + (columns - 1) * _GAP + 18
    # A panel's title is the name of its only method.
    named = {line.name: line for line in every if line.name not in panels}
    height = _draw_legend(drawing, named, below, width) if named else 0.0
    return drawing.svg(width, below + height, name)


def _draw_panel(
    drawing: svg.Drawing,
    title: str,
    lines: Sequence[Line],
    ends: tuple[float, float],
    y: svg.Scale,
    label: str,
) -> None:
    epochs = [epoch for line in lines for epoch in line.epochs]
    x = svg.Scale(min(epochs), max(epochs), *ends)
    count = 4 if x.end - x.start > 200 else 3
    whole = [tick for tick in svg.ticks(x.low, x.high, count) if tick == round(tick)]
    drawing.text(x.start, y.end - 26, title, class_="name strong")
    drawing.x_axis(x, y.start, y.end, whole, "epoch")
    drawing.y_axis(y, x.start, x.end, svg.ticks(y.low, y.high, 4), label)
    for line in lines:
        upper, lower = (
            [(x(at), y(max(v, y.low))) for at, v in zip(line.epochs, edge, strict=True)]
            for edge in (line.high, line.low)
        )
        outline = svg.path_of([*upper, *reversed(lower)]) + "Z"
        drawing.add("path", d=outline, class_=f"band {line.colour}")
    for line in lines:
        points = list(zip(line.epochs, line.mean, strict=True))
        drawn = "".join(
            svg.path_of([(x(at), y(value)) for at, value in piece])
            for piece in _pieces_above(points, y.low)
        )
        words = f"{line.name}: {line.mean[-1]:.3g} at the end"
        drawing.add("path", words, d=drawn, **line.look)


def _pieces_above(
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


def _draw_legend(
    drawing: svg.Drawing, lines: Mapping[str, Line], top: float, width: float
) -> float:
    """Draw the legend; returns its height."""
    column = max(_LEGEND_COLUMN, _SAMPLE + _LETTER * max(map(len, lines)))
    per_row = max(1, int((width - _LEFT) // column))
    for number, line in enumerate(lines.values()):
        x = _LEFT + (number % per_row) * column
        y = top + (number // per_row) * _LEGEND_ROW
        drawing.add("path", d=svg.path_of([(x, y), (x + 30, y)]), **line.look)
        drawing.text(x + 38, y + 4, line.name, class_="name")
    return -(-len(lines) // per_row) * _LEGEND_ROW
