"""The picture of docs/when.md: gains over the plain backbone against homophily."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.ticker import NullLocator

from tempergat.base.figures import COLOURS, MARKERS, new_figure, save_drawing, style
from tempergat.nn import BackboneName
from tempergat.study.when.report.analysis import Measured
from tempergat.study.when.report.failures import Untrained

_DRAWN = {
    "residual": "residual",
    "post_gate": "gate on the output",
    "neighbour_gate": "gate fed by neighbours",
    "constant_gate": "constant gate",
    "temperature": "temperature",
}
_DRAWN_ON_REAL = ["residual", "post_gate", "temperature"]
# Gains on real graphs are between -10 and 37 points, many of them below 1, so the axis
# is linear near 0 and logarithmic beyond.
_LINEAR_TO = 3.0
_TICKS = [-30, -10, -3, 0, 3, 10, 30]

# Graphs with their homophily, by backbone.
Lines = Mapping[BackboneName, Sequence[tuple[float, Measured]]]


@dataclass(frozen=True)
class Drawn:
    """What is drawn.

    Attributes:
        generated: Generated graphs that differ in homophily alone.
        real: Real graphs with their adjusted homophily, lowest first; drawn where there
            are some.
        chance: The homophily of edges drawn at random, on generated graphs.
        threshold: The adjusted homophily at which real graphs are divided.
    """

    generated: Lines
    real: Lines
    chance: float
    threshold: float


def gains_figure(drawn: Drawn, untrained: Untrained, stem: Path) -> Path:
    """Draws the gain of each arm over the plain backbone.

    Args:
        drawn: The graphs.
        untrained: The runs on real graphs that failed to train.
        stem: Path without a suffix.
    """
    graphs = max(len(line) for line in drawn.real.values())
    heights = [3.1, 0.9 + 0.28 * graphs] if graphs else [3.1]
    with style():
        figure = new_figure(7.6, sum(heights))
        panels = figure.subplots(
            len(heights),
            len(drawn.generated),
            sharey="row",
            squeeze=False,
            height_ratios=heights,
        )
        for axes, (backbone, line) in zip(
            panels[0], drawn.generated.items(), strict=True
        ):
            _draw_line(axes, line)
            axes.axvline(drawn.chance, color="grey", linewidth=0.8, linestyle=":")
            axes.set_title(f"generated graphs, {backbone}")
            axes.set_xlabel("homophily (dotted: chance)")
        panels[0, 0].set_ylabel("points over the plain backbone")
        panels[0, -1].legend(fontsize=7.5)
        if graphs:
            for axes, (backbone, line) in zip(
                panels[1], drawn.real.items(), strict=True
            ):
                _draw_names(axes, line, backbone, untrained)
                below = sum(homophily < drawn.threshold for homophily, _ in line)
                axes.axhline(below - 0.5, color="grey", linewidth=0.8, linestyle="--")
                axes.set_title(f"real graphs, {backbone}")
                axes.set_xlabel(f"points, logarithmic beyond ±{_LINEAR_TO:g}")
            _name_rows(panels[1, 0], next(iter(drawn.real.values())))
        return save_drawing(figure, stem)


def _draw_line(axes: Any, line: Sequence[tuple[float, Measured]]) -> None:
    """Gains against homophily."""
    for arm in _DRAWN:
        means, errors = _gains(line, arm)
        axes.errorbar(
            [homophily for homophily, _ in line],
            means,
            errors,
            label=_DRAWN[arm],
            **_look(arm),
        )
    axes.axhline(0.0, color="grey", linewidth=0.8)


def _draw_names(
    axes: Any,
    line: Sequence[tuple[float, Measured]],
    backbone: str,
    untrained: Untrained,
) -> None:
    """Gains on graphs one below the other, the arms of a graph on lines of its row."""
    for place, arm in enumerate(_DRAWN_ON_REAL):
        means, errors = _gains(line, arm)
        failed = [
            bool(untrained.seeds((graph.graph, backbone, arm))) for _, graph in line
        ]
        for is_hollow in (False, True):
            rows = [row for row, has in enumerate(failed) if has == is_hollow]
            if rows:
                axes.errorbar(
                    [means[row] for row in rows],
                    [row + 0.25 * (place - 1) for row in rows],
                    xerr=[errors[row] for row in rows],
                    markerfacecolor="white" if is_hollow else COLOURS[_number(arm)],
                    linestyle="none",
                    **_look(arm),
                )
    axes.axvline(0.0, color="grey", linewidth=0.8)
    axes.set_xscale("symlog", linthresh=_LINEAR_TO, linscale=0.8)
    axes.set_xlim(-35, 60)
    axes.set_xticks(_TICKS, [str(tick) for tick in _TICKS])
    axes.xaxis.set_minor_locator(NullLocator())
    for row in range(0, len(line), 2):
        axes.axhspan(row - 0.5, row + 0.5, color="0.95", linewidth=0, zorder=0)


def _name_rows(axes: Any, line: Sequence[tuple[float, Measured]]) -> None:
    """Writes names and adjusted homophily beside the rows, lowest on top."""
    names = [f"{graph.graph}  {homophily:.2f}" for homophily, graph in line]
    axes.set_yticks(range(len(line)), names, fontsize=8)
    axes.set_ylim(len(line) - 0.5, -0.5)
    axes.set_ylabel("graph and its adjusted homophily")


def _gains(
    line: Sequence[tuple[float, Measured]], arm: str
) -> tuple[list[float], list[float]]:
    """The mean gain on each graph, and half of its interval."""
    summaries = [graph.gain(arm) for _, graph in line]
    means = [summary.mean or 0.0 for summary in summaries]
    return means, [
        0.0 if s.high is None else s.high - mean
        for s, mean in zip(summaries, means, strict=True)
    ]


def _look(arm: str) -> dict[str, Any]:
    return {
        "color": COLOURS[_number(arm)],
        "marker": MARKERS[_number(arm)],
        "markersize": 4,
        "capsize": 2,
        "elinewidth": 0.8,
    }


def _number(arm: str) -> int:
    return list(_DRAWN).index(arm)
