"""The figure of docs/noise.md: T against sigma and the gate against rho."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tempergat.base.figures import new_figure, save_drawing, style
from tempergat.study.noise import SELECTED
from tempergat.study.noise_findings.claims import LAST, Cell, Claims, TrendClaim

# Colour and marker of each layer.
_LAYERS = {1: ("#0072B2", "o"), 2: ("#D55E00", "s")}
# Line style and fill of each moment that is drawn.
_MOMENTS = {
    LAST: ("-", True, "last epoch"),
    SELECTED: ("--", False, "epoch of best validation accuracy"),
}


def claims_figure(claims: Claims, feature_rms: Mapping[str, float], stem: Path) -> Path:
    """T against sigma above, the mean gate against rho below; one column per dataset.

    Args:
        claims: What is drawn.
        feature_rms: By dataset, the unit of sigma; its absolute values are written at
            the top of a panel where it is known.
        stem: Path without a suffix.
    """
    datasets = list(dict.fromkeys(cell.dataset for cell in claims.temperature.cells))
    with style():
        figure = new_figure(0.6 + 2.7 * len(datasets), 5.4)
        panels = figure.subplots(2, len(datasets), squeeze=False, sharey="row")
        for place, dataset in enumerate(datasets):
            above, below = panels[0, place], panels[1, place]
            _draw(above, claims.temperature, dataset)
            _draw(below, claims.gate, dataset)
            above.set_xlabel("sigma / RMS")
            below.set_xlabel("missing share rho")
            seeds = claims.temperature.cells[2 * place].seeds
            above.set_title(f"{dataset}, {seeds} seeds")
            _add_absolute_axis(above, claims.temperature, feature_rms.get(dataset))
        panels[0, 0].set_ylabel("learned temperature T")
        panels[1, 0].set_ylabel("mean gate")
        handles, labels = panels[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=8)
        return save_drawing(figure, stem)


def _draw(axes: Any, claim: TrendClaim, dataset: str) -> None:
    for moment, (line, is_filled, words) in _MOMENTS.items():
        for cell in claim.at[moment]:
            if cell.dataset != dataset:
                continue
            colour, marker = _LAYERS[cell.layer]
            axes.plot(
                np.arange(len(cell.levels)),
                cell.means,
                color=colour,
                marker=marker,
                markersize=4,
                markerfacecolor=colour if is_filled else "white",
                linestyle=line,
                linewidth=1.2,
                label=f"layer {cell.layer}, {words}",
            )
    levels = _levels(claim.cells)
    axes.set_xticks(np.arange(len(levels)), labels=[f"{level:g}" for level in levels])


def _add_absolute_axis(axes: Any, claim: TrendClaim, unit: float | None) -> None:
    if unit is None:
        return
    levels = _levels(claim.cells)
    top = axes.secondary_xaxis("top")
    top.set_xticks(
        np.arange(len(levels)), labels=[f"{level * unit:.2g}" for level in levels]
    )
    top.set_xlabel("sigma")


def _levels(cells: Sequence[Cell]) -> Sequence[float]:
    return cells[0].levels
