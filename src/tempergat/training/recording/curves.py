"""A run's losses and scores over epochs, thinned for its record."""

import numpy as np

from tempergat.training.loop import COLUMNS

# More points than this are not seen in a figure.
_MOST_POINTS = 50
_DIGITS = 5


def thinned_curves(history: np.ndarray) -> dict[str, tuple[float, ...]]:
    """At most fifty epochs, the first and the last among them, evenly spread.

    Args:
        history: One run's rows of `EpochLoop.history`, [epochs, columns].

    Returns:
        The epochs as `epoch`, from 1, and the values by column.
    """
    count = min(len(history), _MOST_POINTS)
    places = np.unique(np.linspace(0, len(history) - 1, count).round().astype(int))
    curves = {"epoch": tuple(float(place + 1) for place in places)}
    for name, values in zip(COLUMNS, history[places].T, strict=True):
        curves[name] = tuple(float(f"{value:.{_DIGITS}g}") for value in values)
    return curves
