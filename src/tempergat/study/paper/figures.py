"""The picture of docs/reproduction.md: pooled gains under three selection rules."""

from collections.abc import Sequence
from pathlib import Path

from tempergat.base.figures import COLOURS, MARKERS, new_figure, save_drawing, style
from tempergat.study.paper.claims import DatasetReproduction
from tempergat.study.paper.gains import GATED, TEMPERATURE_ALONE, pooled_gain
from tempergat.study.paper.summary import RULE_WORDS


def pooled_figure(datasets: Sequence[DatasetReproduction], stem: Path) -> Path:
    """Draw the pooled gains with their 95 % intervals.

    Args:
        datasets: The datasets that were run.
        stem: Path of the figure without a suffix.
    """
    groups = {"gated variants": GATED, "temperature alone": TEMPERATURE_ALONE}
    rows = [(name, dataset) for name in groups for dataset in datasets]
    with style():
        figure = new_figure(6.4, 1.3 + 0.42 * len(rows))
        axes = figure.subplots()
        axes.axvline(0.0, color="#808080", linewidth=0.8, zorder=0)
        for number, (rule, label) in enumerate(RULE_WORDS.items()):
            for place, (name, dataset) in enumerate(rows):
                found = pooled_gain(dataset.by_rule[rule], groups[name])
                if found is None or found.mean is None:
                    continue
                height = place + 0.22 * (number - 1)
                colour = COLOURS[number + 1]
                if found.low is not None and found.high is not None:
                    ends = [found.low, found.high]
                    axes.plot(ends, 2 * [height], color=colour)
                axes.plot(
                    found.mean,
                    height,
                    color=colour,
                    marker=MARKERS[number],
                    markersize=4,
                    linestyle="none",
                    label=label,
                )
        labels = [f"{name}, {dataset.result.dataset}" for name, dataset in rows]
        axes.set_yticks(range(len(rows)), labels=labels)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlabel("gain over the backbone, points")
        lines, words = axes.get_legend_handles_labels()
        unique = dict(zip(words, lines, strict=True))
        if unique:
            figure.legend(
                list(unique.values()),
                list(unique),
                loc="outside lower center",
                ncols=3,
            )
        return save_drawing(figure, stem)
