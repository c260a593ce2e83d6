"""Pictures of the multiverse: every variant's gain, and the cells' distances."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tempergat.base.figures import COLOURS, MARKERS, new_figure, save_drawing, style
from tempergat.study.multiverse.cells import Cell
from tempergat.study.multiverse.gains import CellGains
from tempergat.study.paper import RULE_WORDS

# Height that the points of one variant share.
_BAND = 0.8


def multiverse_figure(
    found: Sequence[CellGains],
    methods: Sequence[str],
    paper: Mapping[str, Mapping[str, float]],
    stem: Path,
) -> Path:
    """Draw the gains with their 95 % intervals, one panel per dataset.

    Args:
        found: The gains, nearest cells first.
        methods: The variants, from top to bottom.
        paper: The paper's gains by dataset and variant; those it has none of are left
            out.
        stem: Path of the figure without a suffix.
    """
    datasets = list(dict.fromkeys(gains.dataset for gains in found))
    rules = list(RULE_WORDS)
    with style():
        figure = new_figure(3.2 * len(datasets), 1.4 + 0.62 * len(methods))
        panels = figure.subplots(1, len(datasets), sharey=True, squeeze=False)[0]
        for axes, dataset in zip(panels, datasets, strict=True):
            of_dataset = [gains for gains in found if gains.dataset == dataset]
            step = _BAND / max(len(of_dataset), 1)
            axes.axvline(0.0, color="#808080", linewidth=0.8, zorder=0)
            for row, method in enumerate(methods):
                for place, gains in enumerate(of_dataset):
                    gain = gains.gains[method]
                    height = row - _BAND / 2 + (place + 0.5) * step
                    number = rules.index(gains.cell.selection)
                    axes.plot(
                        [gain.low, gain.high],
                        [height, height],
                        color=COLOURS[number + 1],
                        linewidth=0.9,
                    )
                    axes.plot(
                        gain.difference,
                        height,
                        marker=MARKERS[number],
                        markersize=3,
                        color=COLOURS[number + 1],
                        linestyle="none",
                        label=RULE_WORDS[gains.cell.selection],
                    )
                published = paper[dataset].get(method)
                if published is not None:
                    axes.plot(
                        [published, published],
                        [row - _BAND / 2, row + _BAND / 2],
                        color="black",
                        linewidth=1.8,
                        label="the paper",
                    )
            axes.set_yticks(range(len(methods)), labels=list(methods))
            axes.set_ylim(len(methods) - 0.5, -0.5)
            axes.set_xlabel("gain over the backbone, points")
            axes.set_title(dataset)
        handles: dict[str, Any] = {}
        for axes in panels:
            lines, labels = axes.get_legend_handles_labels()
            handles = dict(zip(labels, lines, strict=True)) | handles
        figure.legend(
            list(handles.values()),
            list(handles),
            loc="outside lower center",
            ncols=4,
        )
    return save_drawing(figure, stem)


def distances_figure(cells: Sequence[Cell], near: float, stem: Path) -> Path:
    """Draw how far some cells are from the paper's baselines.

    Args:
        cells: The cells, nearest first, run on all datasets.
        near: Up to this distance a cell is near.
        stem: Path of the figure without a suffix.
    """
    rules = list(RULE_WORDS)
    with style():
        figure = new_figure(7.2, 1.4 + 0.28 * len(cells))
        axes = figure.subplots()
        axes.axvline(near, color="#808080", linewidth=0.8, linestyle=":", zorder=0)
        for row, cell in enumerate(cells):
            number = rules.index(cell.selection)
            axes.plot(
                cell.distance,
                row,
                marker=MARKERS[number],
                color=COLOURS[number + 1],
                linestyle="none",
                label=RULE_WORDS[cell.selection],
            )
        axes.set_yticks(
            range(len(cells)), labels=[cell.training.words for cell in cells]
        )
        axes.set_ylim(len(cells) - 0.5, -0.5)
        axes.set_xlim(0.0, None)
        axes.set_xlabel("distance in standard errors (dotted: near)")
        lines, labels = axes.get_legend_handles_labels()
        unique = dict(zip(labels, lines, strict=True))
        figure.legend(
            list(unique.values()), list(unique), loc="outside lower center", ncols=3
        )
        return save_drawing(figure, stem)
