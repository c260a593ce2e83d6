"""The progress of a sweep as plain lines of text."""

import time
from collections.abc import Callable, Sequence

from tempergat.base import counted, duration
from tempergat.comparison.report.formats import mean_and_std
from tempergat.comparison.sweeps.state import Progress
from tempergat.comparison.tuned import OnSearch, SearchProgress
from tempergat.stats import Summary, summarise
from tempergat.training import Run


class Tally:
    """The finished runs of each method, and their summaries.

    Args:
        methods: The methods compared, in order.
        runs: Runs of each.
        selection: The rule whose scores are shown.
    """

    def __init__(self, methods: Sequence[str], runs: int, selection: str) -> None:
        self.runs = runs
        self._selection = selection
        self._finished: dict[str, list[Run]] = {method: [] for method in methods}
        self._summaries: dict[str, Summary] = {}

    def add(self, runs: Sequence[Run]) -> None:
        """Count further runs."""
        for run in runs:
            self._finished[run.method].append(run)
        for method in {run.method for run in runs}:
            done = [run for run in self._finished[method] if run.status == "done"]
            self._summaries[method] = summarise(
                [100.0 * run.scores[self._selection].test for run in done],
                failed=len(self._finished[method]) - len(done),
            )

    def __getitem__(self, method: str) -> Summary | None:
        return self._summaries.get(method)

    @property
    def methods(self) -> list[str]:
        """All methods, also those without a finished run."""
        return list(self._finished)

    @property
    def best(self) -> str:
        """The highest mean so far, in words; empty without a finished run."""
        scored = [
            (summary.mean, method)
            for method, summary in self._summaries.items()
            if summary.mean is not None
        ]
        if not scored:
            return ""
        mean, method = max(scored)
        return f"best so far {method} {mean:.2f}"


class ProgressLines:
    """Prints a line for every group of runs that finishes.

    Args:
        say: Prints a line.
        tally: Counts the runs.
    """

    def __init__(self, say: Callable[[str], None], tally: Tally) -> None:
        self._say = say
        self._tally = tally
        self._waited_for: set[str] = set()

    def __call__(self, progress: Progress) -> None:
        self._tally.add(progress.new)
        if progress.method is None:
            if progress.runs_done:
                self._say(f"{runs_done(progress)} are there already")
            return
        if progress.waiting and progress.method not in self._waited_for:
            self._waited_for.add(progress.method)
            self._say(f"{progress.method}: waiting for another process to finish it")
        for method in dict.fromkeys(run.method for run in progress.new):
            summary = self._tally[method]
            assert summary is not None
            failed = f", {summary.failed} failed" if summary.failed else ""
            self._say(
                f"{method}: {mean_and_std(summary.mean, summary.std)} over "
                f"{counted(summary.runs, 'run')}{failed}; {runs_done(progress)}"
                f"{time_left(progress)}"
            )


def search_lines(say: Callable[[str], None]) -> OnSearch:
    """A callback that says how far a search for settings is, with the time left.

    Args:
        say: Prints a line.
    """
    started = time.monotonic()

    def show(progress: SearchProgress) -> None:
        spent = time.monotonic() - started
        left = spent / progress.done * (progress.of - progress.done)
        end = f", about {duration(left)} left" if left else ""
        say(
            f"search: {progress.done} of {counted(progress.of, 'setting')} of each "
            f"method tried{end}"
        )

    return show


def runs_done(progress: Progress) -> str:
    """`3 of 10 runs`."""
    return f"{progress.runs_done} of {counted(progress.runs, 'run')}"


def time_left(progress: Progress) -> str:
    """`, about 20 s left`; empty where it is not known or all is done."""
    if progress.time_left_s is None or progress.runs_done == progress.runs:
        return ""
    return f", about {duration(progress.time_left_s)} left"
