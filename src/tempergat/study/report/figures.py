"""Figures of a study: scores with their intervals, and average ranks."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from tempergat.base.figures import new_figure, style
from tempergat.nn.methods import METHODS
from tempergat.stats import RankTable, Summary

_BACKBONE_LOOK = {
    "gcn": ("#8C8C8C", "s"),
    "gat": ("#D55E00", "o"),
    "gatv2": ("#0072B2", "^"),
    "mlp": ("#009E73", "D"),
}


def scores_figure(
    title: str,
    axis_label: str,
    scores: Mapping[str, Sequence[float]],
    summaries: Mapping[str, Summary],
    baseline: str | None = None,
) -> Figure:
    """Every method's runs as points, its mean and 95 % interval on top.

    Args:
        title: Above the figure.
        axis_label: Of the score, with its unit.
        scores: The finished runs' scores of each method, in the order drawn.
        summaries: The same methods' summaries.
        baseline: The method whose mean is drawn as a line across.
    """
    with style():
        figure = new_figure(6.4, 0.8 + 0.32 * max(len(scores), 3))
        axes = figure.add_subplot()
        for row, (method, values) in enumerate(scores.items()):
            colour, marker = _BACKBONE_LOOK[METHODS[method].backbone]
            axes.scatter(
                values,
                row + _spread(len(values)),
                s=9,
                color=colour,
                alpha=0.5,
                linewidths=0,
            )
            _draw_interval(axes, row, summaries[method], marker)
        _draw_baseline(axes, baseline, summaries)
        labels = [
            f"{method} ({summaries[method].failed} failed)"
            if summaries[method].failed
            else method
            for method in scores
        ]
        axes.set_yticks(range(len(labels)), labels=labels)
        axes.set_ylim(len(labels) - 0.5, -0.5)
        axes.set_xlabel(f"{axis_label}; bar: 95 % interval of the mean")
        axes.set_title(title)
    return figure


def ranks_figure(title: str, table: RankTable) -> Figure:
    """Average ranks on a line, the critical difference as a bar above it.

    Methods joined by a thick line are closer than the critical difference.
    """
    methods = list(table.average)
    left_count = (len(methods) + 1) // 2
    groups = indistinct_groups(table)
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
            _draw_rank(
                axes,
                method,
                table.average[method],
                depth,
                best - 0.1 if on_left else worst + 0.1,
                on_left,
            )
        for level, (start, end) in enumerate(groups):
            axes.plot(
                [start - 0.06, end + 0.06],
                [0.45 + 0.35 * level] * 2,
                color="#404040",
                linewidth=3.5,
                solid_capstyle="butt",
            )
        axes.text(
            (best + worst) / 2,
            first_label + left_count + 0.1,
            "thick line: closer than the critical difference, not told apart",
            ha="center",
            va="center",
            fontsize=8,
        )
        axes.set_title(title)
    return figure


def indistinct_groups(table: RankTable) -> list[tuple[float, float]]:
    """The widest stretches of average ranks within the critical difference."""
    ranks = sorted(table.average.values())
    stretches: list[tuple[float, float]] = []
    for start in ranks:
        end = max(r for r in ranks if r - start <= table.critical_difference)
        if end > start and not any(a <= start and end <= b for a, b in stretches):
            stretches.append((start, end))
    return stretches


def _spread(count: int) -> NDArray[np.float64]:
    """Heights that keep a row's points apart: the golden ratio's multiples."""
    steps = np.arange(count, dtype=np.float64)
    return (steps * 0.6180339887 % 1.0 - 0.5) * 0.6


def _draw_interval(axes: Any, row: int, summary: Summary, marker: str) -> None:
    if summary.mean is None:
        return
    if summary.low is not None and summary.high is not None:
        axes.plot([summary.low, summary.high], [row, row], color="black", linewidth=3)
    axes.plot(
        summary.mean,
        row,
        marker=marker,
        markersize=6,
        markerfacecolor="white",
        color="black",
    )


def _draw_baseline(
    axes: Any, baseline: str | None, summaries: Mapping[str, Summary]
) -> None:
    if baseline is None or summaries[baseline].mean is None:
        return
    axes.axvline(
        summaries[baseline].mean,
        color="#606060",
        linestyle="--",
        linewidth=0.8,
        zorder=0,
    )


def _draw_critical_difference(axes: Any, width: float, start: float) -> None:
    axes.plot([start, start + width], [-1.7, -1.7], color="black", linewidth=2)
    for end in (start, start + width):
        axes.plot([end, end], [-1.85, -1.55], color="black", linewidth=1)
    axes.text(
        start + width / 2,
        -1.8,
        f"critical difference {width:.2f}",
        ha="center",
        va="bottom",
    )


def _draw_rank(
    axes: Any, method: str, rank: float, depth: float, label_x: float, on_left: bool
) -> None:
    colour, marker = _BACKBONE_LOOK[METHODS[method].backbone]
    axes.plot([rank, rank, label_x], [0, depth, depth], color="#707070", linewidth=0.7)
    axes.plot(rank, 0, marker=marker, markersize=5, color=colour, clip_on=False)
    axes.text(
        label_x,
        depth,
        f"{method}  {rank:.2f} " if on_left else f" {rank:.2f}  {method}",
        ha="right" if on_left else "left",
        va="center",
    )
