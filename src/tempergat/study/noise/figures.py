"""The figures of the noise study: values against noise levels."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from tempergat.base.figures import new_figure, save_figure, style
from tempergat.nn import BACKBONES, METHODS, BackboneName
from tempergat.study.noise.trends import Series

_BACKBONES = ("gat", "gatv2")
# Colour and marker, by what a method adds to its backbone. The markers differ too, so
# that the figures can be read in grey.
_COLOUR_AND_MARKER = {
    "gcn": ("#8C8C8C", "X"),
    "plain": ("#000000", "o"),
    "gated": ("#E69F00", "s"),
    "temp_only": ("#0072B2", "^"),
    "temp_gated": ("#D55E00", "D"),
    "gated_temp": ("#56B4E9", "v"),
    "gated_first": ("#A0522D", "P"),
    "temp_gated_head": ("#CC79A7", "*"),
    "mlp": ("#009E73", "p"),
}

Panel = tuple[str, Sequence[Series]]


def temperature_figure(series: Sequence[Series], stem: Path) -> tuple[Path, Path]:
    """Learned temperature against sigma, by layer and backbone."""
    return _layers_figure(series, "learned temperature T", "sigma / RMS", stem)


def gate_figure(series: Sequence[Series], stem: Path) -> tuple[Path, Path]:
    """Mean gate against rho, by layer, backbone and tau."""
    return _layers_figure(series, "mean gate", "missing share rho", stem)


def sharpness_figure(
    spread: Sequence[Series], entropy: Sequence[Series], stem: Path
) -> tuple[Path, Path]:
    """Spread of e/T and entropy of attention against sigma, by layer and backbone."""
    rows = [
        (f"{label}, layer {layer}", [s for s in found if s.layer == layer])
        for layer in sorted({s.layer or 0 for s in spread})
        for found, label in (
            (spread, "spread of e/T"),
            (entropy, "entropy / log degree"),
        )
    ]
    columns = [
        (backbone, lambda s, b=backbone: _backbone(s) == b) for backbone in _BACKBONES
    ]
    return _grid(_title(spread), rows, columns, "sigma / RMS", stem)


def accuracy_figure(series: Sequence[Series], stem: Path) -> tuple[Path, Path]:
    """Test accuracy of every method against both kinds of noise."""
    rows = [
        (f"accuracy (%), {b}", [s for s in series if _is_drawn_with(b, _backbone(s))])
        for b in _BACKBONES
    ]
    kinds = dict.fromkeys((s.noise, s.tau) for s in series)
    columns = [
        (
            "sigma / RMS" if tau is None else f"missing share rho, tau = {tau:g}",
            lambda s, kind=(noise, tau): (s.noise, s.tau) == kind,
        )
        for noise, tau in kinds
    ]
    return _grid(_title(series), rows, columns, "noise level", stem)


def _layers_figure(
    series: Sequence[Series], label: str, axis: str, stem: Path
) -> tuple[Path, Path]:
    rows = [
        (f"{label}, layer {layer}", [s for s in series if s.layer == layer])
        for layer in sorted({s.layer or 0 for s in series})
    ]
    taus = list(dict.fromkeys(s.tau for s in series))
    columns = [
        (
            backbone if tau is None else f"{backbone}, tau = {tau:g}",
            lambda s, b=backbone, t=tau: _backbone(s) == b and s.tau == t,
        )
        for tau in taus
        for backbone in _BACKBONES
    ]
    return _grid(_title(series), rows, columns, axis, stem)


def _grid(
    title: str,
    rows: Sequence[Panel],
    columns: Sequence[tuple[str, Callable[[Series], bool]]],
    axis: str,
    stem: Path,
) -> tuple[Path, Path]:
    """One panel per row and column; the panels of a row share their vertical scale."""
    with style():
        figure = new_figure(0.6 + 2.7 * len(columns), 1.1 + 2.1 * len(rows))
        panels = figure.subplots(len(rows), len(columns), squeeze=False, sharey="row")
        for line, (label, found) in zip(panels, rows, strict=True):
            line[0].set_ylabel(label)
            for axes, (heading, wanted) in zip(line, columns, strict=True):
                for series in found:
                    if wanted(series):
                        _draw(axes, series)
                axes.set_title(heading)
        for axes in panels[-1]:
            axes.set_xlabel(axis)
        handles = {
            text: handle
            for axes in panels.ravel()
            for handle, text in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        _add_legend(figure, handles)
        figure.suptitle(title, x=0.01, ha="left", fontsize=10)
        return save_figure(figure, stem)


def _add_legend(figure: Figure, handles: Mapping[str, Any]) -> None:
    """A legend below the panels, in as many columns as there is room for."""
    for columns in range(len(handles), 0, -1):
        legend = figure.legend(
            list(handles.values()),
            list(handles),
            loc="outside lower center",
            ncols=columns,
            fontsize=7,
        )
        if legend.get_window_extent().width <= figure.bbox.width:
            return
        legend.remove()


def _draw(axes: Any, series: Series) -> None:
    """Draw means with 95 % intervals, the levels at equal distances."""
    colour, marker = _COLOUR_AND_MARKER[_role(series.method)]
    undecayed = series.variant != series.method
    summaries = series.summaries
    if any(summary.mean is None for summary in summaries):
        return
    places = np.arange(len(series.levels))
    means = np.array([summary.mean for summary in summaries])
    # Curves are shifted a little, so that their intervals do not cover each other.
    shift = 0.05 * (list(_COLOUR_AND_MARKER).index(_role(series.method)) - 3)
    axes.errorbar(
        places + shift + (0.025 if undecayed else 0.0),
        means,
        yerr=[
            0.0 if summary.high is None else summary.high - mean
            for summary, mean in zip(summaries, means, strict=True)
        ],
        elinewidth=0.8,
        color=colour,
        marker=marker,
        markersize=4,
        markerfacecolor="white" if undecayed else colour,
        linestyle="--" if undecayed else "-",
        linewidth=1.2,
        label=_role(series.method) + (", theta undecayed" if undecayed else ""),
    )
    axes.set_xticks(places, labels=[f"{level:g}" for level in series.levels])


def _role(method: str) -> str:
    """What a method adds to its backbone, by the same name for both backbones."""
    if method in _BACKBONES:
        return "plain"
    return method.removesuffix("_v2")


def _backbone(series: Series) -> BackboneName:
    return METHODS[series.method].backbone


def _is_drawn_with(attention: str, backbone: BackboneName) -> bool:
    """Whether a backbone is drawn in the panels of an attention backbone.

    Methods without attention are drawn in the panels of both.
    """
    return backbone == attention or not BACKBONES[backbone].has_attention


def _title(series: Sequence[Series]) -> str:
    seeds = max((len(s.values) for s in series), default=0)
    name = series[0].dataset if series else ""
    return f"{name}, {seeds} seeds; bars: 95 % intervals of the mean"
