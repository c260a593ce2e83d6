"""Recorded values of runs, averaged over the runs of a method."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tempergat.comparison.charts.panels import DASHES, Line
from tempergat.comparison.html_report import marks
from tempergat.training import Run

# A run's values by epoch; empty where it recorded none.
ByEpoch = Callable[[Run], Mapping[int, float]]


def lines_of(
    runs: Sequence[Run], methods: tuple[str, ...], by_epoch: ByEpoch
) -> list[Line]:
    """One line per method: the mean of its runs and a band of one deviation.

    Only epochs at which every run of the method has a value are in its line. A method
    with fewer than two of them has no line.

    Args:
        runs: Runs of any methods; failed ones are left out.
        methods: All methods of the report, in order.
        by_epoch: Gives a run's values.
    """
    lines = []
    used: dict[str, int] = {}
    for method in methods:
        of_method = [r for r in runs if r.method == method and r.status == "done"]
        values = [found for run in of_method if (found := by_epoch(run))]
        epochs = sorted(set.intersection(*map(set, values))) if values else []
        # One epoch alone gives no line.
        if len(epochs) < 2:
            continue
        colour = marks.colour_of(method, methods)
        dash = DASHES[used.setdefault(colour, 0) % len(DASHES)]
        used[colour] += 1
        table = np.array([[found[epoch] for epoch in epochs] for found in values])
        # The sample's deviation, as in the tables.
        mean, std = table.mean(0), table.std(0, ddof=1 if len(table) > 1 else 0)
        low, high = (mean - std).tolist(), (mean + std).tolist()
        lines.append(Line(method, colour, dash, epochs, mean.tolist(), low, high))
    return lines
