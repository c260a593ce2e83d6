"""The pictures of docs/reproduction.md."""

from typing import Any

from matplotlib.figure import Figure

from studies.homogeneous import beside, multiverse
from studies.homogeneous.beside import DATASETS, GROUPS, RULES, TABLE
from studies.results import read_whole_runs
from tempergat.base.figures import COLOURS, MARKERS, new_figure, style
from tempergat.comparison.paper import BACKBONE_OF, PAPER_METHODS, read_paper
from tempergat.comparison.report.figures import result_figure
from tempergat.comparison.results.from_runs import dataset_result
from tempergat.stats import Summary

# Height that the points of one variant share.
_BAND = 0.8


def scores_figure(dataset: str, table: str = TABLE) -> Figure:
    """Every method's runs on a dataset, at the best validation accuracy."""
    every = read_whole_runs(f"{table}/runs.csv")
    runs = [run for run in every if run.dataset == dataset]
    metric = read_paper()[dataset]["gat"].metric
    return result_figure(dataset_result(runs, PAPER_METHODS, BACKBONE_OF, metric))


def pooled_figure() -> Figure:
    """The average gains of each group of variants, with their 95 % intervals."""
    rows = [(group, dataset) for group in GROUPS for dataset in DATASETS]
    with style():
        figure = new_figure(6.4, 1.3 + 0.42 * len(rows))
        axes = figure.subplots()
        for number, rule in enumerate(RULES):
            for row, (group, dataset) in enumerate(rows):
                gain = beside.pooled_gain(dataset, GROUPS[group], rule)
                _draw(axes, gain, row + 0.22 * (number - 1), rule)
        _finish(axes, [f"{group}, {dataset}" for group, dataset in rows])
        _legend(figure)
    return figure


def multiverse_figure() -> Figure:
    """The gains with their 95 % intervals in every cell, one panel for each dataset."""
    datasets, methods = multiverse.PLAN["datasets"], multiverse.PLAN["variants"]
    with style():
        figure = new_figure(3.2 * len(datasets), 1.4 + 0.62 * len(methods))
        panels = figure.subplots(1, len(datasets), sharey=True)
        for axes, dataset in zip(panels, datasets, strict=True):
            for row, method in enumerate(methods):
                top, gains = row - _BAND / 2, multiverse.gains(dataset, method)
                for place, (cell, gain) in enumerate(gains.items()):
                    height = top + (place + 0.5) * _BAND / len(gains)
                    _draw(axes, gain, height, cell.rule, size=3, linewidth=0.9)
                if method in BACKBONE_OF:
                    paper = 2 * [beside.paper_gain(dataset, method)]
                    look = {"color": "black", "linewidth": 1.8, "label": "the paper"}
                    axes.plot(paper, [top, top + _BAND], **look)
            _finish(axes, methods)
            axes.set_title(dataset)
        _legend(figure)
    return figure


def _draw(
    axes: Any, gain: Summary, height: float, rule: str, size: float = 4, **line: float
) -> None:
    number = list(RULES).index(rule)
    colour = COLOURS[number + 1]
    axes.plot([gain.low, gain.high], [height, height], color=colour, **line)
    axes.plot(
        gain.mean,
        height,
        color=colour,
        marker=MARKERS[number],
        markersize=size,
        linestyle="none",
        label=RULES[rule],
    )


def _finish(axes: Any, rows: list[str]) -> None:
    axes.axvline(0.0, color="#808080", linewidth=0.8, zorder=0)
    axes.set_yticks(range(len(rows)), labels=rows)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel("gain over the backbone, points")


def _legend(figure: Figure) -> None:
    """One entry for each label, below all panels."""
    lines, labels = figure.axes[0].get_legend_handles_labels()
    entries = dict(zip(labels, lines, strict=True))
    where = "outside lower center"
    figure.legend(entries.values(), entries, loc=where, ncols=len(entries))
