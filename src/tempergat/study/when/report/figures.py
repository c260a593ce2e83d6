"""The picture of docs/when.md: gains over the plain backbone against homophily."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tempergat.base.figures import COLOURS, MARKERS, new_figure, save_drawing, style
from tempergat.nn import BackboneName
from tempergat.study.when.report.analysis import Measured

_DRAWN = {
    "residual": "residual",
    "post_gate": "gate on the output",
    "neighbour_gate": "gate fed by neighbours",
    "constant_gate": "constant gate",
    "temperature": "temperature",
}
_DRAWN_ON_REAL = ["residual", "post_gate", "temperature"]


# Graphs with their homophily, by backbone.
Lines = Mapping[BackboneName, Sequence[tuple[float, Measured]]]


def gains_figure(generated: Lines, real: Lines, chance: float, stem: Path) -> Path:
    """Draws the gain of each arm over the plain backbone against homophily.

    Args:
        generated: Generated graphs that differ in homophily alone.
        real: Real graphs with their adjusted homophily; drawn where there are some.
        chance: The homophily of edges drawn at random, on generated graphs.
        stem: Path without a suffix.
    """
    has_real = any(real.values())
    with style():
        figure = new_figure(7.2, 6.4 if has_real else 3.4)
        panels = figure.subplots(
            2 if has_real else 1, len(generated), sharey="row", squeeze=False
        )
        for axes, (backbone, line) in zip(panels[0], generated.items(), strict=True):
            _draw(axes, line, list(_DRAWN), "-")
            axes.axvline(chance, color="grey", linewidth=0.8, linestyle=":")
            axes.set_title(f"generated graphs, {backbone}")
            axes.set_xlabel("homophily (dotted: chance)")
        panels[0, -1].legend(fontsize=7.5)
        if has_real:
            for axes, (backbone, line) in zip(panels[1], real.items(), strict=True):
                _draw(axes, line, _DRAWN_ON_REAL, "none")
                axes.axvline(0.0, color="grey", linewidth=0.8, linestyle=":")
                axes.set_title(f"real graphs, {backbone}")
                axes.set_xlabel("adjusted homophily (dotted: chance)")
        for row in panels:
            row[0].set_ylabel("points over the plain backbone")
        return save_drawing(figure, stem)


def _draw(
    axes: Any, line: Sequence[tuple[float, Measured]], arms: Sequence[str], style: str
) -> None:
    for arm in arms:
        number = list(_DRAWN).index(arm)
        summaries = [graph.gain(arm) for _, graph in line]
        axes.errorbar(
            [homophily for homophily, _ in line],
            [summary.mean or 0.0 for summary in summaries],
            [
                0.0 if s.high is None or s.mean is None else s.high - s.mean
                for s in summaries
            ],
            label=_DRAWN[arm],
            color=COLOURS[number],
            marker=MARKERS[number],
            markersize=4,
            capsize=2,
            elinewidth=0.8,
            linestyle=style,
        )
    axes.axhline(0.0, color="grey", linewidth=0.8)
