"""The state of a sweep, for display, with an estimate of the time left."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tempergat.comparison.sweeps.origin import Origin
from tempergat.training import Run, RunConfig


@dataclass(frozen=True)
class Progress:
    """The state of a sweep, for display.

    Attributes:
        method: The method of the current group; None before the first.
        runs_done: How many of the runs asked for are in the store.
        runs: How many runs were asked for.
        group_runs: How many of them are in the current group.
        epoch: Epochs the current group has trained.
        epochs: Epochs it will train.
        new: Runs asked for that were seen in the store for the first time, whether
            this sweep or another process trained them.
        time_left_s: Estimate; None until a group has trained.
        waiting: Whether another sweep trains the group and this one waits for it.
        config: The settings of the current group.
        elsewhere: How many runs of the same data, settings and seeds the store holds
            that were made on another device or with other numerics. They are neither
            used nor returned.
    """

    method: str | None
    runs_done: int
    runs: int
    group_runs: int = 0
    epoch: int = 0
    epochs: int = 0
    new: tuple[Run, ...] = ()
    time_left_s: float | None = None
    waiting: bool = False
    config: RunConfig | None = None
    elsewhere: Mapping[Origin, int] = field(default_factory=dict)


OnProgress = Callable[[Progress], None]


class Clock:
    """Estimates the time that is left from the time that training took so far.

    Work is counted in epochs of a run.
    """

    def __init__(self) -> None:
        self._work = 0
        self._time_s = 0.0

    def add(self, work: int, time_s: float) -> None:
        """Count work that was done, and the time it took."""
        self._work += work
        self._time_s += time_s

    def estimate(self, work: int) -> float | None:
        """Seconds that this much work will take; None before any was done."""
        return self._time_s / self._work * max(work, 0) if self._work else None
