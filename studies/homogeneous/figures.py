"""The pictures of docs/reproduction.md."""

from typing import Any

from matplotlib.figure import Figure

from studies.homogeneous import beside, multiverse
from studies.homogeneous.beside import DATASETS, GATED, RULES
from tempergat.base.figures import COLOURS, MARKERS, new_figure, style
from tempergat.comparison.paper import BACKBONE_OF
from tempergat.stats import Summary

# Height that the points of one variant share.
_BAND = 0.8


def beside_figure() -> Figure:
    """Every gain in the nearest cell over the paper's, with its 95 % interval."""
    cell = multiverse.cells()[0]
    with style():
        figure = new_figure(6.4, 4.6)
        axes = figure.subplots()
        for number, dataset in enumerate(DATASETS):
            for method in BACKBONE_OF:
                gain = multiverse.gains(dataset, method)[cell]
                is_gated, colour = method in GATED, COLOURS[number + 1]
                error = gain.high - gain.mean
                axes.errorbar(
                    beside.paper_gain(dataset, method),
                    gain.mean,
                    error,
                    color=colour,
                    marker="o" if is_gated else "s",
                    markerfacecolor=colour if is_gated else "white",
                    linestyle="none",
                    elinewidth=0.8,
                    label=f"{dataset}, {'gated' if is_gated else 'temperature'}",
                )
        axes.axline((0.0, 0.0), slope=1.0, color="#808080", linewidth=0.8, zorder=0)
        axes.axhline(0.0, color="#808080", linewidth=0.8, linestyle=":", zorder=0)
        axes.set_xlabel("the paper's gain over the backbone, points")
        axes.set_ylabel("our gain, points")
        _legend(figure, columns=3)
    return figure


def multiverse_figure() -> Figure:
    """The gains with their 95 % intervals in every cell, one panel for each dataset."""
    methods = multiverse.PLAN["variants"]
    with style():
        figure = new_figure(3.2 * len(DATASETS), 1.4 + 0.62 * len(methods))
        panels = figure.subplots(1, len(DATASETS), sharey=True)
        for axes, dataset in zip(panels, DATASETS, strict=True):
            for row, method in enumerate(methods):
                top, gains = row - _BAND / 2, multiverse.gains(dataset, method)
                for place, (cell, gain) in enumerate(gains.items()):
                    height = top + (place + 0.5) * _BAND / len(gains)
                    _draw(axes, gain, height, cell.rule)
                if method in BACKBONE_OF:
                    paper = 2 * [beside.paper_gain(dataset, method)]
                    look = {"color": "black", "linewidth": 1.8, "label": "the paper"}
                    axes.plot(paper, [top, top + _BAND], **look)
            axes.axvline(0.0, color="#808080", linewidth=0.8, zorder=0)
            axes.set_yticks(range(len(methods)), labels=methods)
            axes.set_ylim(len(methods) - 0.5, -0.5)
            axes.set_xlabel("gain over the backbone, points")
            axes.set_title(dataset)
        _legend(figure, columns=4)
    return figure


def _draw(axes: Any, gain: Summary, height: float, rule: str) -> None:
    number = list(RULES).index(rule)
    colour = COLOURS[number + 1]
    axes.plot([gain.low, gain.high], [height, height], color=colour, linewidth=0.9)
    axes.plot(
        gain.mean,
        height,
        color=colour,
        marker=MARKERS[number],
        markersize=3,
        linestyle="none",
        label=RULES[rule],
    )


def _legend(figure: Figure, columns: int) -> None:
    """One entry for each label, below all panels."""
    lines, labels = figure.axes[0].get_legend_handles_labels()
    entries = dict(zip(labels, lines, strict=True))
    where = "outside lower center"
    figure.legend(entries.values(), entries, loc=where, ncols=columns, handlelength=1.5)
