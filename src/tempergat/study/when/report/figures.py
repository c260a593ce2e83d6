"""The picture of docs/when.md: gains over the plain backbone against homophily."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tempergat.base.figures import COLOURS, MARKERS, new_figure, save_figure, style
from tempergat.nn import BackboneName
from tempergat.study.when.graphs import GeneratedGraph
from tempergat.study.when.report.analysis import Measured, homophily_line

_DRAWN = {
    "residual": "residual",
    "post_gate": "gate on the output",
    "neighbour_gate": "gate fed by neighbours",
    "constant_gate": "constant gate",
    "temperature": "temperature",
}


def gains_figure(
    graphs: Mapping[BackboneName, Sequence[Measured]],
    grid: Mapping[str, GeneratedGraph],
    chance: float,
    stem: Path,
) -> tuple[Path, Path]:
    """Draws the gain of each arm over the plain backbone against homophily.

    Args:
        graphs: The complete generated graphs by backbone.
        grid: All generated graphs.
        chance: The homophily of edges drawn at random.
        stem: Path without a suffix.
    """
    with style():
        figure = new_figure(7.2, 3.4)
        panels = figure.subplots(1, len(graphs), sharey=True, squeeze=False)[0]
        for axes, (backbone, found) in zip(panels, graphs.items(), strict=True):
            line = homophily_line(found, grid)
            for number, (arm, label) in enumerate(_DRAWN.items()):
                summaries = [graph.gain(arm) for _, graph in line]
                means = [summary.mean or 0.0 for summary in summaries]
                half = [
                    0.0 if s.high is None or s.mean is None else s.high - s.mean
                    for s in summaries
                ]
                axes.errorbar(
                    [homophily for homophily, _ in line],
                    means,
                    half,
                    label=label,
                    color=COLOURS[number],
                    marker=MARKERS[number],
                    markersize=4,
                    capsize=2,
                    elinewidth=0.8,
                )
            axes.axhline(0.0, color="grey", linewidth=0.8)
            axes.axvline(chance, color="grey", linewidth=0.8, linestyle=":")
            axes.set_title(backbone)
            axes.set_xlabel("homophily (dotted: chance)")
        panels[0].set_ylabel("points over the plain backbone")
        panels[-1].legend(fontsize=7.5)
    return save_figure(figure, stem)
