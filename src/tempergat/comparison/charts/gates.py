"""How far the gates of each layer are open: histograms over nodes and channels."""

from collections.abc import Sequence

import numpy as np

from tempergat.comparison.html_report import marks, svg
from tempergat.training import Run

_PANEL, _GAP, _LEFT, _TOP, _HEIGHT, _BELOW = 150.0, 26.0, 130.0, 30.0, 64.0, 40.0


def gates_chart(runs: Sequence[Run], methods: tuple[str, ...]) -> str | None:
    """One row per gated method and one column per layer, from closed (0) to open (1).

    None where no run recorded its gates.

    Args:
        runs: All runs.
        methods: The methods of the report, in order.
    """
    found = _by_method(runs)
    rows = [method for method in methods if method in found]
    if not rows:
        return None
    layers = max(len(found[method][0].gate_counts or ()) for method in rows)
    parts = []
    for row, method in enumerate(rows):
        top = _TOP + row * (_HEIGHT + _BELOW)
        parts.append(svg.method_name(_LEFT - 14, top + _HEIGHT / 2, method))
        counts = [run.gate_counts for run in found[method]]
        for layer, columns in enumerate(np.array(counts, dtype=float).sum(0)):
            left = _LEFT + layer * (_PANEL + _GAP)
            if row == 0:
                parts.append(
                    svg.text(left, 16, f"layer {layer + 1}", class_="name strong")
                )
            colour = marks.colour_of(method, methods)
            parts += _histogram(columns / columns.sum(), left, top, colour)
    width = _LEFT + layers * (_PANEL + _GAP)
    height = _TOP + len(rows) * (_HEIGHT + _BELOW)
    return svg.drawing(width, height, "Histograms of gates by method and layer", parts)


def _by_method(runs: Sequence[Run]) -> dict[str, list[Run]]:
    found: dict[str, list[Run]] = {}
    for run in runs:
        if run.status == "done" and run.gate_counts:
            found.setdefault(run.method, []).append(run)
    return found


def _histogram(shares: np.ndarray, left: float, top: float, colour: str) -> list[str]:
    bottom = top + _HEIGHT
    x = svg.Scale(0.0, 1.0, left, left + _PANEL)
    y = svg.Scale(0.0, float(shares.max()), bottom, top)
    parts = svg.x_axis(x, bottom, bottom, [0.0, 0.5, 1.0])
    parts.append(svg.line(left, bottom, left + _PANEL, bottom, "grid"))
    width = _PANEL / len(shares)
    for place, share in enumerate(shares.tolist()):
        low, high = place / len(shares), (place + 1) / len(shares)
        parts.append(
            svg.element(
                "rect",
                svg.title(f"{100 * share:.1f} % of gates from {low:g} to {high:g}"),
                x=left + place * width + 0.5,
                y=y(share),
                width=width - 1,
                height=bottom - y(share),
                class_=f"bar {colour}",
            )
        )
    return parts
