"""Temperatures and mean gates of each layer over epochs."""

from collections.abc import Mapping, Sequence

from tempergat.comparison.charts.panels import Panel, panels_chart
from tempergat.comparison.charts.series import lines_of
from tempergat.training import Run

# By the attribute of a `LayerRecord`: the figure's title and its axis.
LEARNED = {
    "temperatures": ("Temperatures while training", "temperature"),
    "gate_means": ("Mean gates while training", "mean gate"),
}


def learned_chart(
    runs: Sequence[Run], methods: tuple[str, ...], what: str
) -> str | None:
    """One panel per layer; None where no run recorded it.

    Args:
        runs: All runs.
        methods: The methods of the report, in order.
        what: A key of `LEARNED`.
    """
    panels: list[Panel] = []
    while lines := lines_of(runs, methods, _Layer(what, len(panels))):
        panels.append(Panel(f"layer {len(panels) + 1}", lines))
    title, label = LEARNED[what]
    return panels_chart(panels, title, label) if panels else None


class _Layer:
    """Gives a run's learned values of one layer, by epoch."""

    def __init__(self, what: str, layer: int) -> None:
        self._what = what
        self._layer = layer

    def __call__(self, run: Run) -> Mapping[int, float]:
        found = {}
        for epoch, record in (run.layers_at_epochs or {}).items():
            values = getattr(record, self._what)
            if self._layer < len(values):
                found[epoch] = values[self._layer]
        return found
