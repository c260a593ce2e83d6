"""The picture of docs/default.md: what the chosen cell gains on every graph."""

from pathlib import Path

from tempergat.base.figures import COLOURS, MARKERS, new_figure, save_drawing, style
from tempergat.study.default_recipe.confirmation import ConfirmationResult


def gains_figure(found: ConfirmationResult, stem: Path) -> Path:
    """A row for every graph, by falling gain, with a point for every baseline.

    Args:
        found: What is drawn.
        stem: Path of the figure without a suffix.
    """
    graphs = sorted(found.graphs, key=lambda one: -one.gain)
    with style():
        figure = new_figure(6.4, 1.2 + 0.26 * len(graphs))
        axes = figure.subplots()
        axes.axvline(0.0, color="#808080", linewidth=0.8, zorder=0)
        for number, method in enumerate(graphs[0].scores):
            pairs = [one.scores[method] for one in graphs]
            axes.plot(
                [pair.chosen - pair.present for pair in pairs],
                range(len(graphs)),
                marker=MARKERS[number],
                markersize=5,
                color=COLOURS[number + 1],
                linestyle="none",
                label=method,
            )
        axes.set_yticks(range(len(graphs)), labels=[one.graph for one in graphs])
        axes.set_ylim(len(graphs) - 0.5, -0.5)
        axes.set_xlabel("gain over the earlier default, points")
        axes.legend(loc="lower right")
        return save_drawing(figure, stem)
