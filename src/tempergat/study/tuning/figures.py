"""The picture of docs/tuned.md: variants against their tuned backbone."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tempergat.base.figures import COLOURS, MARKERS, new_figure, save_drawing, style
from tempergat.stats import PairedComparison

# Differences are cut off here, so that collapsed methods do not hide the others.
_LOWEST = -4.0


def tuned_figure(
    series: Mapping[str, Mapping[str, Sequence[PairedComparison]]], stem: Path
) -> Path:
    """Differences with 95 % intervals, one panel per graph.

    Args:
        series: By name, then by graph, the variants against their backbone.
        stem: Path of the figure without a suffix.
    """
    graphs = list(dict.fromkeys(name for found in series.values() for name in found))
    methods = list(
        dict.fromkeys(
            one.method
            for found in series.values()
            for of_graph in found.values()
            for one in of_graph
        )
    )
    with style():
        figure = new_figure(0.8 + 2.7 * len(graphs), 1.2 + 0.32 * len(methods))
        panels = figure.subplots(1, len(graphs), sharey=True, squeeze=False)[0]
        for axes, graph in zip(panels, graphs, strict=True):
            axes.axvline(0.0, color="#808080", linewidth=0.8, zorder=0)
            for number, (name, found) in enumerate(series.items()):
                for one in found.get(graph, ()):
                    height = methods.index(one.method) + 0.3 * number
                    height -= 0.15 * (len(series) - 1)
                    colour = COLOURS[(2 * number + 1) % len(COLOURS)]
                    difference = one.difference or 0.0
                    is_far = difference < _LOWEST
                    if not is_far and one.low is not None and one.high is not None:
                        axes.plot([one.low, one.high], 2 * [height], color=colour)
                    axes.plot(
                        max(difference, _LOWEST),
                        height,
                        marker="<" if is_far else MARKERS[number],
                        markersize=4,
                        color=colour,
                        linestyle="none",
                        label=None if is_far else name,
                    )
            axes.set_yticks(range(len(methods)), labels=methods)
            axes.set_ylim(len(methods) - 0.5, -0.5)
            axes.set_xlabel("points over the backbone")
            axes.set_title(graph)
        handles: dict[str, Any] = {}
        for axes in panels:
            lines, labels = axes.get_legend_handles_labels()
            handles |= dict(zip(labels, lines, strict=True))
        figure.legend(
            list(handles.values()), list(handles), loc="outside lower center", ncols=2
        )
        return save_drawing(figure, stem)
