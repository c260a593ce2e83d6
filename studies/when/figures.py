"""The picture of docs/when.md: gains over the plain backbone against homophily."""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from studies.when import analysis
from tempergat.base.figures import COLOURS, MARKERS, new_figure, style
from tempergat.stats import summarise

_DRAWN = {
    "residual": "residual",
    "post_gate": "gate on the output",
    "neighbour_gate": "gate fed by neighbours",
    "constant_gate": "constant gate",
    "temperature": "temperature",
}
_LOOKS: dict[str, dict[str, Any]] = {
    arm: {"color": colour, "marker": marker}
    | {"markersize": 4, "capsize": 2, "elinewidth": 0.8}
    for arm, colour, marker in zip(_DRAWN, COLOURS, MARKERS, strict=False)
}
_GREY = {"color": "grey", "linewidth": 0.8}
# Gains on real graphs are between -10 and 37 points, many of them below 1, so the axis
# is linear near 0 and logarithmic beyond.
_LINEAR_TO = 3.0
_TICKS = [-30, -10, -3, 0, 3, 10, 30]


def gains_figure() -> Figure:
    """The gain of each arm on generated graphs, and on real ones below them."""
    generated, real = analysis.graphs("generated"), analysis.graphs("real")
    line = generated[~generated.index.str.contains(",")]
    heights = [3.1, 0.9 + 0.28 * len(real)]
    with style():
        figure = new_figure(7.6, sum(heights))
        panels = figure.subplots(2, 2, sharey="row", height_ratios=heights)
        for (above, below), backbone in zip(panels.T, analysis.BACKBONES, strict=True):
            _draw_line(above, line, backbone)
            _draw_names(below, real, backbone)
        panels[0, 0].set_ylabel("points over the plain backbone")
        panels[0, 1].legend(fontsize=7.5)
        names = [f"{graph}  {homophily:.2f}" for graph, homophily in real.items()]
        panels[1, 0].set_yticks(range(len(real)), names, fontsize=8)
        panels[1, 0].set_ylim(len(real) - 0.5, -0.5)
        panels[1, 0].set_ylabel("graph and its adjusted homophily")
        return figure


def _draw_line(axes: Any, graphs: pd.Series, backbone: str) -> None:
    """Gains against homophily, on graphs that differ in nothing else."""
    for arm, label in _DRAWN.items():
        gains = _gains(graphs, backbone, arm)
        axes.errorbar(graphs, gains["mean"], gains["half"], label=label, **_LOOKS[arm])
    axes.axhline(0.0, **_GREY)
    axes.axvline(analysis.CHANCE, linestyle=":", **_GREY)
    axes.set(title=f"generated graphs, {backbone}", xlabel="homophily (dotted: chance)")


def _draw_names(axes: Any, graphs: pd.Series, backbone: str) -> None:
    """Gains on graphs one below the other, the arms of a graph on lines of its row."""
    for place, arm in enumerate(("residual", "post_gate", "temperature")):
        gains, look = _gains(graphs, backbone, arm), _LOOKS[arm]
        gains["row"] = [row + 0.25 * (place - 1) for row in range(len(gains))]
        for is_hollow, some in gains.groupby("has_failed"):
            face = "white" if is_hollow else look["color"]
            look = look | {"markerfacecolor": face, "linestyle": "none"}
            axes.errorbar(some["mean"], some["row"], xerr=some["half"], **look)
    axes.axvline(0.0, **_GREY)
    axes.set_xscale("symlog", linthresh=_LINEAR_TO, linscale=0.8)
    axes.set_xticks(_TICKS, [str(tick) for tick in _TICKS])
    axes.xaxis.set_minor_locator(NullLocator())
    for row in range(0, len(graphs), 2):
        axes.axhspan(row - 0.5, row + 0.5, color="0.95", linewidth=0, zorder=0)
    axes.axhline((graphs < analysis.THRESHOLD).sum() - 0.5, linestyle="--", **_GREY)
    axes.set(title=f"real graphs, {backbone}", xlim=(-35, 60))
    axes.set_xlabel(f"points, logarithmic beyond ±{_LINEAR_TO:g}")


def _gains(graphs: pd.Series, backbone: str, arm: str) -> pd.DataFrame:
    """By graph, the mean gain, half of its interval, and whether runs failed."""
    pairs, failed = analysis.pairs(backbone, f"{arm}-plain"), analysis.failed_seeds()
    found = [
        summarise(list(pairs[g]), test_to_train=analysis.TEST_TO_TRAIN.get(g, 0.0))
        for g in graphs.index
    ]
    gains = pd.DataFrame({"mean": [one.mean for one in found]}, graphs.index)
    gains["half"] = [one.high for one in found] - gains["mean"]
    gains["has_failed"] = [(graph, backbone, arm) in failed for graph in graphs.index]
    return gains
