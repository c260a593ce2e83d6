"""The progress of one run as lines of text."""

import sys
import time

from tempergat.base import duration

# How many lines a whole run prints.
_LINES = 10


class EpochLines:
    """Says which epoch is done, and how much time is left.

    Args:
        epochs: How many epochs the run has.
    """

    def __init__(self, epochs: int) -> None:
        self._epochs = epochs
        self._first: tuple[int, float] | None = None

    def line(self, epoch: int) -> str:
        """The line for an epoch that has just been done."""
        now = time.monotonic()
        # Epochs done before this process started say nothing about its speed.
        if self._first is None:
            self._first = epoch, now
        first, start = self._first
        left = ""
        if first < epoch < self._epochs:
            seconds = (now - start) / (epoch - first) * (self._epochs - epoch)
            left = f", about {duration(seconds)} left"
        return f"epoch {epoch} of {self._epochs}{left}"

    def is_due(self, epoch: int) -> bool:
        """Whether the line of an epoch is printed where earlier lines stay visible."""
        return epoch % max(self._epochs // _LINES, 1) == 0 or epoch == self._epochs

    def print_line(self, epoch: int) -> None:
        """Prints the line to standard error, if it is due."""
        line = self.line(epoch)
        if self.is_due(epoch):
            print(line, file=sys.stderr, flush=True)
