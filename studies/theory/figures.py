"""Figures of docs/theory.md, drawn from the tables of the analysis."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from tempergat.base.figures import COLOURS, LINE_STYLES, MARKERS, new_figure, style

GREY = "#808080"
NOTE: dict[str, Any] = {"ha": "right", "fontsize": 7, "color": "#404040"}
# Above this the variance is little more than rounding error.
MOST = 1000.0
VARIANTS = {"ungated": "no gate", "gate_first": "gate first", "post_gate": "gate after"}


def temperature_figure(curves: pd.DataFrame) -> Figure:
    """SNR against temperature, one curve per noise level (Theorem 1)."""
    with style():
        figure = new_figure(6.4, 4.2)
        axes = figure.add_subplot()
        sigmas = curves["sigma"].unique()
        chosen = sigmas[np.linspace(0, len(sigmas) - 1, 5).round().astype(int)]
        for number, sigma in enumerate(chosen):
            rows = curves[curves["sigma"] == sigma]
            label = f"sigma = {sigma:g}"
            _band(axes, rows, "temperature", "snr", _style(number), label)
        first = curves.iloc[0]
        _level(axes, first["uniform_limit"], "T to infinity", 7)
        _level(axes, first["one_neighbour"], "one neighbour", 2)
        axes.axvline(1.0, color=GREY, linewidth=0.8)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set(xlabel="temperature T", ylabel="SNR(T)")
        axes.set_title("Gaussian noise: SNR against temperature")
        axes.legend(fontsize=8)
    return figure


def best_temperature_figure(best: pd.DataFrame) -> Figure:
    """The best temperature against the noise, and the share of its SNR at T = 1."""
    with style():
        figure = new_figure(7.6, 3.4)
        left, right = figure.subplots(1, 2)
        _band(left, best, "sigma", "best_temperature", _style(0), "simulated")
        weak = {"linestyle": "--", "color": "#D55E00", "label": "second order in 1/T"}
        left.plot(best["sigma"], best["weak_logit_best"], **weak)
        left.axhline(1.0, color=GREY, linewidth=0.8)
        left.set_xscale("log", base=2)
        left.set_yscale("log", base=2)
        left.set_ylabel("best temperature")
        left.set_title("Best temperature")
        left.legend(fontsize=8)
        _band(right, best, "sigma", "share_at_one", _style(0), "SNR(1) / best SNR")
        right.axhline(0.95, color=GREY, linewidth=0.8, linestyle=":")
        right.set_xscale("log", base=2)
        right.set_ylim(0, 1.05)
        right.set_ylabel("share of the best SNR")
        right.set_title("What T = 1 keeps")
        for axes in (left, right):
            axes.set_xlabel("noise sigma")
    return figure


def gate_tau_figure(curves: pd.DataFrame) -> Figure:
    """Gated and ungated SNR against the fill-in noise at several temperatures."""
    curves = curves[curves["rho"] == 0.5]
    with style():
        figure = new_figure(7.6, 5.6)
        panels = figure.subplots(2, 2, sharex=True).ravel()
        groups = curves.groupby("temperature")
        for axes, (temperature, group) in zip(panels, groups, strict=True):
            for number, (variant, label) in enumerate(VARIANTS.items()):
                rows, curve = group[group["variant"] == variant], _style(number)
                _band(axes, rows, "tau", "snr", curve, f"{label}, labels")
                faint = curve | {"markerfacecolor": "white", "linewidth": 0.8}
                _band(axes, rows, "tau", "readout_snr", faint, f"{label}, features")
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            # Ticks like 0.6 and 20, because the range is small.
            axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axes.yaxis.set_minor_formatter(NullFormatter())
            axes.set_title(f"T = {temperature:g}")
            axes.set_ylabel("SNR")
        for axes in panels[2:]:
            axes.set_xlabel("fill-in noise tau")
        panels[0].legend(fontsize=7)
        figure.suptitle("Missing coordinates, rho = 0.5")
    return figure


def gate_rho_figure(curves: pd.DataFrame) -> Figure:
    """Gated and ungated SNR against the share of missing coordinates."""
    curves = curves[curves["tau"] == 1.0]
    with style():
        figure = new_figure(6.4, 4.2)
        axes = figure.add_subplot()
        for number, (temperature, group) in enumerate(curves.groupby("temperature")):
            for variant in ("ungated", "gate_first"):
                rows, curve = group[group["variant"] == variant], _style(number)
                curve["linestyle"] = "-"
                if variant == "ungated":
                    curve |= {"linestyle": "--", "markerfacecolor": "white"}
                label = f"{VARIANTS[variant]}, T = {temperature:g}"
                _band(axes, rows, "rho", "snr", curve, label)
        axes.set_yscale("log")
        axes.set(xlabel="share of missing coordinates rho", ylabel="SNR")
        axes.set_title("Missing coordinates, tau = 1")
        axes.legend(fontsize=7, ncols=2)
    return figure


def boundary_figure(boundary: pd.DataFrame) -> Figure:
    """The noise below which the oracle gate hurts, against rho."""
    with style():
        figure = new_figure(6.4, 4.0)
        axes = figure.add_subplot()
        for number, (temperature, rows) in enumerate(boundary.groupby("temperature")):
            label = f"T = {temperature:g}"
            _band(axes, rows, "rho", "tau_star", _style(number), label)
        rows = boundary[boundary["temperature"] == 1.0]
        look = {"color": "black", "linewidth": 2.5, "alpha": 0.4}
        weak = rows["tau_star_weak_logit"]
        axes.plot(rows["rho"], weak, label="second order in 1/T", **look)
        axes.set_ylim(bottom=0)
        axes.set(xlabel="share of missing coordinates rho", ylabel="tau*")
        axes.set_title("The oracle gate lowers the SNR below this noise")
        axes.legend(fontsize=8)
    return figure


def order_figure(order: pd.DataFrame) -> Figure:
    """The gate's gain times T^2 against T: constant, so no first-order gain."""
    with style():
        figure = new_figure(6.4, 4.0)
        axes = figure.add_subplot()
        for number, (tau, rows) in enumerate(order.groupby("tau")):
            curve = _style(number)
            _band(axes, rows, "temperature", "gain_times_t2", curve, f"tau = {tau:g}")
            limit = rows["gain_times_t2_limit"].iloc[0]
            axes.axhline(limit, color=curve["color"], linewidth=0.8, linestyle=":")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xlabel("temperature T")
        axes.set_ylabel("gain of the oracle gate, times T squared")
        axes.set_title("The gain falls as tau squared over T squared")
        axes.legend(fontsize=8)
    return figure


def scenarios_figure(table: pd.DataFrame) -> Figure:
    """Absolute SNR against temperature beyond the paper's setting."""
    table = table[(table["sigma"] == 1.0) & np.isfinite(table["temperature"])]
    with style():
        figure = new_figure(8.8, 4.0)
        panels = figure.subplots(1, 2)
        columns = {"size": "labels", "readout_size": "features"}
        for axes, (column, title) in zip(panels, columns.items(), strict=True):
            for number, name in enumerate(table["scenario"].unique()):
                rows = table[(table["scenario"] == name) & (table[column] < MOST)]
                label = name.replace("_", " ")
                _band(axes, rows, "temperature", column, _style(number), label)
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            axes.set(xlabel="temperature T", ylabel="|SNR|")
            axes.set_title(f"SNR of {title}, sigma = 1")
        panels[0].annotate(
            f"{MOST:g} and more is left out",
            (1.0, 1.0),
            xycoords="axes fraction",
            va="top",
            **NOTE,
        )
        panels[1].legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


# The function that draws each figure, and the table it is drawn from.
FIGURES = {
    "temperature": (temperature_figure, "temperature_curves"),
    "best_temperature": (best_temperature_figure, "best_temperature"),
    "gate_tau": (gate_tau_figure, "gate_curves"),
    "gate_rho": (gate_rho_figure, "gate_curves"),
    "gate_boundary": (boundary_figure, "gate_boundary"),
    "gain_order": (order_figure, "gain_order"),
    "scenarios": (scenarios_figure, "temperature_scenarios"),
}


def _style(number: int) -> dict[str, Any]:
    """Colour, line and marker of a curve; the markers differ for up to eight curves."""
    return {
        "color": COLOURS[-1 - number % len(COLOURS)],
        "linestyle": LINE_STYLES[(number + number // 5) % len(LINE_STYLES)],
        "marker": MARKERS[number % len(MARKERS)],
        "markersize": 4 if number < 5 else 6,
    }


def _band(
    axes: Any, rows: pd.DataFrame, x: str, y: str, curve: Mapping[str, Any], label: str
) -> None:
    """A curve with its interval as a band."""
    axes.plot(rows[x], rows[y], label=label, **curve)
    ends = rows[f"{y}_low"], rows[f"{y}_high"]
    axes.fill_between(rows[x], *ends, color=curve["color"], alpha=0.15, linewidth=0)


def _level(axes: Any, value: float, label: str, above: float) -> None:
    axes.axhline(value, color="#606060", linestyle=":", linewidth=1)
    axes.annotate(
        label,
        (1.0, value),
        xycoords=("axes fraction", "data"),
        xytext=(-2, above),
        textcoords="offset points",
        **NOTE,
    )
