"""The paper's figure 4: T against sigma, and the mean gate against rho, by layer."""

from collections.abc import Iterable, Sequence
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from tempergat.base.figures import new_figure, style
from tempergat.nn import METHODS
from tempergat.stats import summarise
from tempergat.training import CLEAN, Run

BACKBONES = {"gat": "GAT", "gatv2": "GATv2"}
# The colour and the marker of each layer.
LAYER_STYLES = (("#0072B2", "o"), ("#D55E00", "s"), ("#000000", "^"), ("#E69F00", "D"))
# With fewer seeds an interval is too wide to say anything.
SEEDS_FOR_A_BAND = 5
# By attribute of a `LayerRecord`: the noise, and what the axes say.
QUANTITIES = {
    "temperatures": ("gaussian", "sigma, in units of the features' RMS", "learned T"),
    "gate_means": ("missing", "share of missing coordinates, rho", "mean gate"),
}


class Panel(NamedTuple):
    """One dataset and one backbone.

    Attributes:
        title: What stands above.
        quantity: A key of `QUANTITIES`.
        layers: For each layer, a row for each method and seed, a column for each level.
    """

    title: str
    quantity: str
    layers: list[pd.DataFrame]


def learned_frame(dataset: str, runs: Iterable[Run]) -> pd.DataFrame:
    """A row for each finished run, as `panels_of` takes them."""
    return pd.DataFrame(
        {
            "dataset": dataset,
            "method": run.method,
            "seed": run.seed,
            "noise": (run.condition or CLEAN).noise,
            "level": (run.condition or CLEAN).level,
        }
        | {
            f"{quantity}_{layer}": value
            for quantity in QUANTITIES
            for layer, value in enumerate(getattr(run.last, quantity), 1)
        }
        for run in runs
        if run.status == "done"
    )


def panels_of(values: pd.DataFrame) -> list[Panel]:
    """The panels that have values: by quantity, backbone and dataset, in this order.

    Args:
        values: A row for each run with its dataset, method, seed, noise and level, and
            its values at the last epoch: `temperatures_1`, `gate_means_1`, ...
    """
    backbones = values["method"].map(lambda method: METHODS[method].backbone)
    panels = []
    for quantity, (noise, *_) in QUANTITIES.items():
        # In the order of the layers, the tenth too.
        names = sorted(
            values.filter(regex=rf"^{quantity}_\d+$"), key=lambda n: (len(n), n)
        )
        of_noise = values["noise"].isin(["none", noise])
        for backbone in backbones.unique():
            of_backbone = values[of_noise & (backbones == backbone)]
            for dataset, mine in of_backbone.groupby("dataset", sort=False):
                runs = mine.groupby(["method", "seed", "level"])
                layers = [runs[name].mean().unstack("level") for name in names]
                layers = [layer.dropna(how="all") for layer in layers]
                layers = [layer for layer in layers if len(layer)]
                if layers:
                    title = f"{dataset}, {BACKBONES.get(backbone, backbone)}"
                    panels.append(Panel(title, quantity, layers))
    return panels


def draw_panels(panels: Sequence[Panel], columns: int, note: str = "") -> Figure:
    """The mean of the methods with its interval over seeds; thin, single methods.

    Args:
        panels: What to draw, row by row.
        columns: Panels in a row.
        note: What the legend says besides.
    """
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    with style():
        figure = new_figure(2.8 * columns + 0.2, 2.3 * rows + 0.8)
        drawn = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes in drawn[len(panels) :]:
            axes.set_visible(False)
        for axes, panel in zip(drawn, panels, strict=False):
            _draw(axes, panel)
        for quantity in QUANTITIES:
            same = [
                axes
                for axes, panel in zip(drawn, panels, strict=False)
                if panel.quantity == quantity
            ]
            limits = [axes.get_ylim() for axes in same]
            for axes in same:
                axes.set_ylim(min(map(min, limits)), max(map(max, limits)))
        legends = [axes.get_legend_handles_labels() for axes in drawn[: len(panels)]]
        handles, labels = max(legends, key=lambda legend: len(legend[1]))
        place = {"loc": "outside lower center", "ncols": 3, "fontsize": 8}
        words = f"thin: single methods; band: 95 % interval of five seeds or more{note}"
        figure.legend(handles, labels, title=words, title_fontsize=8, **place)
    return figure


def _draw(axes: Any, panel: Panel) -> None:
    _, x_label, y_label = QUANTITIES[panel.quantity]
    styled = zip(panel.layers, cycle(LAYER_STYLES), strict=False)
    for number, (values, (colour, marker)) in enumerate(styled, 1):
        places = np.arange(values.shape[1])
        for _, of_method in values.groupby("method"):
            axes.plot(places, of_method.mean(), color=colour, linewidth=0.5, alpha=0.6)
        by_seed = values.groupby("seed").mean()
        found = [summarise(by_seed[level].dropna()) for level in by_seed]
        # None, where too few runs finished, becomes NaN, which is not drawn.
        means, *ends = np.array([(s.mean, s.low, s.high) for s in found], float).T
        if len(by_seed) >= SEEDS_FOR_A_BAND:
            axes.fill_between(places, *ends, color=colour, alpha=0.2, linewidth=0)
        axes.plot(
            places,
            means,
            color=colour,
            marker=marker,
            markersize=4,
            label=f"layer {number}",
        )
    # Levels at equal distances: they grow by factors.
    axes.set_xticks(places, labels=[f"{level:g}" for level in values])
    axes.set(xlabel=x_label, ylabel=y_label)
    axes.set_title(panel.title)
