"""Figures of results: scores with their intervals, and average ranks."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from tempergat.base import printable
from tempergat.base.figures import new_figure, style
from tempergat.comparison.html_report.svg import shortened
from tempergat.comparison.report.tables import indistinct_groups, shown_interval
from tempergat.comparison.results.result import DatasetResult
from tempergat.nn import METHODS
from tempergat.stats import RankTable, Summary
from tempergat.training import Metric

_BACKBONE_LOOK = {
    "gcn": ("#8C8C8C", "s"),
    "gat": ("#D55E00", "o"),
    "gatv2": ("#0072B2", "^"),
    "transformer": ("#E69F00", "v"),
    "mlp": ("#009E73", "D"),
}
# For your own methods, and for backbones without a row above.
_OTHER_LOOK = ("#CC79A7", "P")
# Letters of a name that fit above a figure.
_LONGEST_TITLE = 50


def result_figure(result: DatasetResult, baseline: str | None = None) -> Figure:
    """Every method's runs as points, its mean and 95 % interval on top.

    Args:
        result: The result of one dataset.
        baseline: The method whose mean is drawn as a line across.
    """
    with style():
        figure = new_figure(6.4, 0.8 + 0.32 * max(len(result.results), 3))
        axes = figure.add_subplot()
        for row, method in enumerate(result.results):
            colour, marker = _colour_and_marker(method.method)
            values = list(method.scores.values())
            # Multiples of the golden ratio keep the points of a row apart.
            steps = np.arange(len(values), dtype=np.float64)
            heights = row + (steps * 0.6180339887 % 1.0 - 0.5) * 0.6
            axes.scatter(values, heights, s=9, color=colour, alpha=0.5, linewidths=0)
            _draw_mean(axes, row, method.summary, result.metric, marker)
        across = result[baseline].summary.mean if baseline in result.methods else None
        if across is not None:
            look: Any = {"color": "#606060", "linestyle": "--", "linewidth": 0.8}
            axes.axvline(across, zorder=0, **look)
        rows = result.results
        labels = [
            _plain(row.method)
            + (f" ({row.summary.failed} failed)" if row.summary.failed else "")
            for row in rows
        ]
        axes.set_yticks(range(len(labels)), labels=labels)
        axes.set_ylim(len(labels) - 0.5, -0.5)
        has_bars = any(shown_interval(r.summary, result.metric) for r in rows)
        bars = "; bar: 95 % interval of the mean" if has_bars else ""
        axes.set_xlabel(f"test {result.metric.axis}{bars}")
        name = shortened(result.dataset, _LONGEST_TITLE)
        axes.set_title(f"{_plain(name)}, {_runs_in_words(result)}")
    return figure


def ranks_figure(title: str, table: RankTable) -> Figure:
    """Average ranks on a line, the critical difference as a bar above it.

    Methods joined by a thick line are closer than the critical difference.
    """
    methods = list(table.average)
    left_count = (len(methods) + 1) // 2
    groups = [group for group in indistinct_groups(table) if group[0] < group[1]]
    first_label = 0.9 + 0.35 * len(groups)
    with style():
        figure = new_figure(6.8, 1.5 + 0.25 * (first_label + left_count))
        axes = figure.add_subplot()
        axes.set_axis_off()
        best, worst = 1.0, float(len(methods))
        margin = 0.28 * (worst - best)
        axes.set_xlim(best - margin, worst + margin)
        axes.set_ylim(first_label + left_count + 0.5, -2.6)
        axes.plot([best, worst], [0, 0], color="black", linewidth=1)
        for tick in range(1, len(methods) + 1):
            axes.plot([tick, tick], [0, -0.25], color="black", linewidth=1)
            axes.text(tick, -0.4, str(tick), ha="center", va="bottom")
        _draw_critical_difference(axes, table.critical_difference, best)
        for position, method in enumerate(methods):
            on_left = position < left_count
            depth = first_label + (position if on_left else len(methods) - 1 - position)
            end = best - 0.1 if on_left else worst + 0.1
            _draw_rank(axes, method, table.average[method], depth, end, on_left)
        bar: Any = {"color": "#404040", "linewidth": 3.5, "solid_capstyle": "butt"}
        for level, (start, end) in enumerate(groups):
            height = 0.45 + 0.35 * level
            axes.plot([start - 0.06, end + 0.06], [height, height], **bar)
        words = "thick line: closer than the critical difference, not shown to differ"
        centre, below = (best + worst) / 2, first_label + left_count + 0.1
        axes.text(centre, below, words, ha="center", va="center", fontsize=8)
        axes.set_title(title)
    return figure


def _colour_and_marker(method: str) -> tuple[str, str]:
    """The colour and the marker of a method."""
    if method not in METHODS:
        return _OTHER_LOOK
    return _BACKBONE_LOOK.get(METHODS[method].backbone, _OTHER_LOOK)


def _plain(name: str) -> str:
    """A name without formulas, and without characters that SVG cannot hold."""
    return printable(name).replace("$", r"\$")


def _runs_in_words(result: DatasetResult) -> str:
    counts = sorted({r.summary.runs for r in result.results})
    if len(counts) == 1:
        return f"{counts[0]} runs each"
    return f"{counts[0]} to {counts[-1]} runs each"


def _draw_mean(
    axes: Any, row: int, summary: Summary, metric: Metric, marker: str
) -> None:
    if summary.mean is None:
        return
    interval = shown_interval(summary, metric)
    if interval is not None:
        axes.plot(interval, [row, row], color="black", linewidth=3)
    look = {"markersize": 6, "markerfacecolor": "white", "color": "black"}
    axes.plot(summary.mean, row, marker=marker, **look)


def _draw_critical_difference(axes: Any, width: float, start: float) -> None:
    axes.plot([start, start + width], [-1.7, -1.7], color="black", linewidth=2)
    for end in (start, start + width):
        axes.plot([end, end], [-1.85, -1.55], color="black", linewidth=1)
    words = f"critical difference {width:.2f}"
    axes.text(start + width / 2, -1.8, words, ha="center", va="bottom")


def _draw_rank(
    axes: Any, method: str, rank: float, depth: float, label_x: float, on_left: bool
) -> None:
    colour, marker = _colour_and_marker(method)
    axes.plot([rank, rank, label_x], [0, depth, depth], color="#707070", linewidth=0.7)
    axes.plot(rank, 0, marker=marker, markersize=5, color=colour, clip_on=False)
    words = f"{method}  {rank:.2f} " if on_left else f" {rank:.2f}  {method}"
    axes.text(label_x, depth, words, ha="right" if on_left else "left", va="center")
