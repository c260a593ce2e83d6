"""The picture of docs/diagnose.md: how far each choice is from the best method."""

from collections.abc import Mapping
from pathlib import Path

from tempergat.base.figures import COLOURS, new_figure, save_drawing, style


def choices_figure(below_best: Mapping[str, float], stem: Path) -> Path:
    """Bars: points below the best method, averaged over graphs.

    Args:
        below_best: The points by choice; that of the rule comes first.
        stem: Path of the figure without a suffix.
    """
    first, *_ = below_best
    ordered = sorted(below_best, key=lambda name: below_best[name])
    with style():
        figure = new_figure(6.4, 1.0 + 0.24 * len(ordered))
        axes = figure.subplots()
        axes.barh(
            range(len(ordered)),
            [below_best[name] for name in ordered],
            color=[COLOURS[2] if name == first else COLOURS[1] for name in ordered],
        )
        axes.set_yticks(range(len(ordered)), labels=ordered)
        axes.invert_yaxis()
        axes.set_xlabel("points below the best method, mean over graphs")
        return save_drawing(figure, stem)
