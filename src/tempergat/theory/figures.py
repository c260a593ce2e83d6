"""Figures of the theory, drawn from the tables of its report."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from tempergat.base.figures import (
    COLOURS,
    LINE_STYLES,
    MARKERS,
    new_figure,
    save_figure,
    style,
)

Row = Mapping[str, Any]


def draw_figures(tables: Mapping[str, Sequence[Row]], folder: Path) -> list[Path]:
    """Draws every figure of a report.

    Args:
        tables: The tables of the report, by name.
        folder: Where the figures go.

    Returns:
        The files written.
    """
    drawn = (
        (temperature_figure, "temperature", "temperature_curves"),
        (best_temperature_figure, "best_temperature", "best_temperature"),
        (gate_figure, "gate_tau", "gate_curves"),
        (gate_rho_figure, "gate_rho", "gate_curves"),
        (boundary_figure, "gate_boundary", "gate_boundary"),
        (order_figure, "gain_order", "gain_order"),
        (scenarios_figure, "scenarios", "temperature_scenarios"),
    )
    files: list[Path] = []
    for draw, name, table in drawn:
        files += draw(tables[table], folder / name)
    return files


def temperature_figure(curves: Sequence[Row], stem: Path) -> tuple[Path, Path]:
    """SNR against temperature, one curve per noise level (Theorem 1)."""
    with style():
        figure = new_figure(6.4, 4.2)
        axes = figure.add_subplot()
        chosen = _evenly_chosen([*dict.fromkeys(row["sigma"] for row in curves)], 5)
        for curve, sigma in zip(_styles(), chosen, strict=False):
            rows = [row for row in curves if row["sigma"] == sigma]
            _band(axes, rows, "temperature", "snr", curve, f"sigma = {sigma:g}")
        first = curves[0]
        _level(axes, first["uniform_limit"], "T to infinity", 7)
        _level(axes, first["one_neighbour"], "one neighbour", 2)
        axes.axvline(1.0, color="#808080", linewidth=0.8)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xlabel("temperature T")
        axes.set_ylabel("SNR(T)")
        axes.set_title("Gaussian noise: SNR against temperature")
        axes.legend(fontsize=8)
        return save_figure(figure, stem)


def best_temperature_figure(best: Sequence[Row], stem: Path) -> tuple[Path, Path]:
    """The best temperature against the noise, and the share of its SNR at T = 1."""
    sigma = [row["sigma"] for row in best]
    with style():
        figure = new_figure(7.6, 3.4)
        left, right = figure.subplots(1, 2)
        _band(left, best, "sigma", "best_temperature", _style(0), "simulated")
        weak = [row["weak_logit_best"] for row in best]
        left.plot(
            sigma, weak, linestyle="--", color="#D55E00", label="second order in 1/T"
        )
        left.axhline(1.0, color="#808080", linewidth=0.8)
        left.set_xscale("log", base=2)
        left.set_yscale("log", base=2)
        left.set_ylabel("best temperature")
        left.set_title("Best temperature")
        left.legend(fontsize=8)
        _band(right, best, "sigma", "share_at_one", _style(0), "SNR(1) / best SNR")
        right.axhline(0.95, color="#808080", linewidth=0.8, linestyle=":")
        right.set_xscale("log", base=2)
        right.set_ylim(0, 1.05)
        right.set_ylabel("share of the best SNR")
        right.set_title("What T = 1 keeps")
        for axes in (left, right):
            axes.set_xlabel("noise sigma")
        return save_figure(figure, stem)


def gate_figure(
    curves: Sequence[Row], stem: Path, rho: float = 0.5
) -> tuple[Path, Path]:
    """Gated and ungated SNR against the fill-in noise at several temperatures."""
    temperatures = [*dict.fromkeys(row["temperature"] for row in curves)]
    with style():
        figure = new_figure(7.6, 5.6)
        panels = figure.subplots(2, 2, sharex=True).ravel()
        for axes, temperature in zip(panels, temperatures, strict=False):
            for curve, variant in zip(_styles(), _VARIANTS, strict=False):
                rows = [
                    row
                    for row in curves
                    if row["rho"] == rho
                    and row["temperature"] == temperature
                    and row["variant"] == variant
                ]
                label = _VARIANTS[variant]
                _band(axes, rows, "tau", "snr", curve, f"{label}, labels")
                faint = curve | {"markerfacecolor": "white", "linewidth": 0.8}
                _band(axes, rows, "tau", "readout_snr", faint, f"{label}, features")
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            _plain_ticks(axes)
            axes.set_title(f"T = {temperature:g}")
            axes.set_ylabel("SNR")
        for axes in panels[2:]:
            axes.set_xlabel("fill-in noise tau")
        panels[0].legend(fontsize=7)
        figure.suptitle(f"Missing coordinates, rho = {rho:g}")
        return save_figure(figure, stem)


def gate_rho_figure(
    curves: Sequence[Row], stem: Path, tau: float = 1.0
) -> tuple[Path, Path]:
    """Gated and ungated SNR against the share of missing coordinates."""
    temperatures = [*dict.fromkeys(row["temperature"] for row in curves)]
    with style():
        figure = new_figure(6.4, 4.2)
        axes = figure.add_subplot()
        for number, temperature in enumerate(temperatures):
            for variant, line in (("ungated", "--"), ("gate_first", "-")):
                rows = [
                    row
                    for row in curves
                    if row["tau"] == tau
                    and row["temperature"] == temperature
                    and row["variant"] == variant
                ]
                curve = _style(number) | {"linestyle": line}
                if variant == "ungated":
                    curve["markerfacecolor"] = "white"
                label = f"{_VARIANTS[variant]}, T = {temperature:g}"
                _band(axes, rows, "rho", "snr", curve, label)
        axes.set_yscale("log")
        axes.set_xlabel("share of missing coordinates rho")
        axes.set_ylabel("SNR")
        axes.set_title(f"Missing coordinates, tau = {tau:g}")
        axes.legend(fontsize=7, ncols=2)
        return save_figure(figure, stem)


def boundary_figure(boundary: Sequence[Row], stem: Path) -> tuple[Path, Path]:
    """The noise below which the oracle gate hurts, against rho."""
    with style():
        figure = new_figure(6.4, 4.0)
        axes = figure.add_subplot()
        temperatures = [*dict.fromkeys(row["temperature"] for row in boundary)]
        for curve, temperature in zip(_styles(), temperatures, strict=False):
            rows = [row for row in boundary if row["temperature"] == temperature]
            _band(axes, rows, "rho", "tau_star", curve, f"T = {temperature:g}")
        rows = [row for row in boundary if row["temperature"] == temperatures[0]]
        axes.plot(
            [row["rho"] for row in rows],
            [row["tau_star_weak_logit"] for row in rows],
            color="black",
            linewidth=2.5,
            alpha=0.4,
            label="second order in 1/T",
        )
        axes.set_ylim(bottom=0)
        axes.set_xlabel("share of missing coordinates rho")
        axes.set_ylabel("tau*")
        axes.set_title("The oracle gate lowers the SNR below this noise")
        axes.legend(fontsize=8)
        return save_figure(figure, stem)


def order_figure(order: Sequence[Row], stem: Path) -> tuple[Path, Path]:
    """The gate's gain times T^2 against T: constant, so no first-order gain."""
    with style():
        figure = new_figure(6.4, 4.0)
        axes = figure.add_subplot()
        for curve, tau in zip(
            _styles(), dict.fromkeys(row["tau"] for row in order), strict=False
        ):
            rows = [row for row in order if row["tau"] == tau]
            _band(axes, rows, "temperature", "gain_times_t2", curve, f"tau = {tau:g}")
            limit = rows[0]["gain_times_t2_limit"]
            axes.axhline(limit, color=curve["color"], linewidth=0.8, linestyle=":")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xlabel("temperature T")
        axes.set_ylabel("gain of the oracle gate, times T squared")
        axes.set_title("The gain falls as tau squared over T squared")
        axes.legend(fontsize=8)
        return save_figure(figure, stem)


def scenarios_figure(
    table: Sequence[Row], stem: Path, sigma: float = 1.0
) -> tuple[Path, Path]:
    """Absolute SNR against temperature beyond the paper's setting."""
    names = [*dict.fromkeys(row["scenario"] for row in table)]
    with style():
        figure = new_figure(8.8, 4.0)
        panels = figure.subplots(1, 2)
        for axes, column, title in zip(
            panels,
            ("size", "readout_size"),
            ("labels", "features"),
            strict=True,
        ):
            for number, name in enumerate(names):
                rows = [
                    row
                    for row in table
                    if row["scenario"] == name
                    and row["sigma"] == sigma
                    and np.isfinite(row["temperature"])
                    and row[column] < _MOST
                ]
                label = name.replace("_", " ")
                _band(axes, rows, "temperature", column, _style(number), label)
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            axes.set_xlabel("temperature T")
            axes.set_ylabel("|SNR|")
            axes.set_title(f"SNR of {title}, sigma = {sigma:g}")
        panels[0].annotate(
            f"{_MOST:g} and more is left out",
            (1.0, 1.0),
            xycoords="axes fraction",
            ha="right",
            va="top",
            fontsize=7,
            color="#404040",
        )
        panels[1].legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
        return save_figure(figure, stem)


# Above this the variance is little more than rounding error.
_MOST = 1000.0

_VARIANTS = {
    "ungated": "no gate",
    "gate_first": "gate first",
    "post_gate": "gate after",
}


def _style(number: int) -> dict[str, Any]:
    """Colour, line and marker of a curve; the markers differ for up to eight curves."""
    return {
        "color": COLOURS[-1 - number % len(COLOURS)],
        "linestyle": LINE_STYLES[(number + number // 5) % len(LINE_STYLES)],
        "marker": MARKERS[number % len(MARKERS)],
        "markersize": 4 if number < 5 else 6,
    }


def _styles() -> Iterator[dict[str, Any]]:
    number = 0
    while True:
        yield _style(number)
        number += 1


def _plain_ticks(axes: Any) -> None:
    """Writes ticks like 0.6 and 20 on a logarithmic axis with a small range."""
    axis = axes.yaxis
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _evenly_chosen(values: Sequence[float], count: int) -> list[float]:
    """About ``count`` values, evenly from the first to the last."""
    places = np.linspace(0, len(values) - 1, min(count, len(values)))
    return [values[int(place)] for place in places.round()]


def _band(
    axes: Any,
    rows: Sequence[Row],
    x_name: str,
    y_name: str,
    curve: Mapping[str, Any],
    label: str,
) -> None:
    """A curve with its interval as a band."""
    x = [row[x_name] for row in rows]
    axes.plot(x, [row[y_name] for row in rows], label=label, **curve)
    axes.fill_between(
        x,
        [row[f"{y_name}_low"] for row in rows],
        [row[f"{y_name}_high"] for row in rows],
        color=curve["color"],
        alpha=0.15,
        linewidth=0,
    )


def _level(axes: Any, value: float, label: str, above: float) -> None:
    axes.axhline(value, color="#606060", linestyle=":", linewidth=1)
    axes.annotate(
        label,
        (1.0, value),
        xycoords=("axes fraction", "data"),
        xytext=(-2, above),
        textcoords="offset points",
        ha="right",
        fontsize=7,
        color="#404040",
    )
