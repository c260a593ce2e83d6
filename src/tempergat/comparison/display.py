"""What is shown while methods are compared."""

import time
from collections.abc import Callable, Sequence

from tempergat.base import counted, duration
from tempergat.comparison.chosen import choose
from tempergat.comparison.plan import Plan
from tempergat.comparison.report.formats import mean_and_std
from tempergat.comparison.results.comparison import Comparison
from tempergat.comparison.sweeps.state import Progress
from tempergat.stats import Summary, summarise
from tempergat.training import Run, metric_of_settings


class Display:
    """Shows how a comparison proceeds, and carries nothing else; this one is silent.

    `start` and `end` surround the training on each graph.
    """

    def start(self, plan: Plan, lines: Sequence[str]) -> None:
        """A graph's turn has come; the lines say what is about to be done on it."""

    def search(self, done: int, of: int) -> None:
        """So many settings of each method were tried."""

    def progress(self, progress: Progress) -> None:
        """An epoch or a group of runs has finished."""

    def end(self) -> None:
        """The training on a graph has ended, in whatever way."""

    def result(self, comparison: Comparison, *, partial: bool = False) -> None:
        """A graph is compared on; in part where not all of its runs fit memory."""

    def stopped(
        self,
        finished: Sequence[Comparison],
        finished_part: Callable[[], Comparison | None],
    ) -> None:
        """The user has stopped the training.

        Args:
            finished: The graphs that are compared on.
            finished_part: Returns the comparison of the finished runs of the graph
                whose turn it is.
        """


class Lines(Display):
    """Prints a line for every group of runs that finishes.

    Args:
        say: Prints a line.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    def start(self, plan: Plan, lines: Sequence[str]) -> None:
        self._selection = plan.selection
        self.metric = metric_of_settings(plan.configs[0].metric)
        self._finished: dict[str, list[Run]] = {name: [] for name in plan.methods}
        # Of the methods with finished runs.
        self.summaries: dict[str, Summary] = {}
        self._waited_for: set[str] = set()
        self._started = time.monotonic()
        for line in lines:
            self._say(line)

    def search(self, done: int, of: int) -> None:
        left = (time.monotonic() - self._started) / done * (of - done)
        end = f", about {duration(left)} left" if left else ""
        self._say(
            f"search: {done} of {counted(of, 'setting')} of each method tried{end}"
        )

    def add(self, runs: Sequence[Run]) -> None:
        """Count finished runs in the summaries of their methods.

        Of two recipes, a summary has the one that validation prefers so far.
        """
        for run in runs:
            self._finished[run.method].append(run)
        for method in {run.method for run in runs}:
            shown = choose(self._finished[method]).compared
            done = [run for run in shown if run.status == "done"]
            self.summaries[method] = summarise(
                [self.metric.shown(run.scores[self._selection].test) for run in done],
                failed=len(shown) - len(done),
            )

    def progress(self, progress: Progress) -> None:
        self.add(progress.new)
        if progress.method is None:
            if progress.runs_done:
                self._say(f"{runs_done(progress)} are there already")
            return
        if progress.waiting and progress.method not in self._waited_for:
            self._waited_for.add(progress.method)
            self._say(f"{progress.method}: waiting for another process to finish it")
        for method in dict.fromkeys(run.method for run in progress.new):
            summary = self.summaries[method]
            failed = f", {summary.failed} failed" if summary.failed else ""
            self._say(
                f"{method}: "
                f"{mean_and_std(summary.mean, summary.std, self.metric.digits)} over "
                f"{counted(summary.runs, 'run')}{failed}; {runs_done(progress)}"
                f"{time_left(progress)}"
            )


def runs_done(progress: Progress) -> str:
    """`3 of 10 runs`."""
    return f"{progress.runs_done} of {counted(progress.runs, 'run')}"


def time_left(progress: Progress) -> str:
    """`, about 20 s left`; empty where it is not known or all is done."""
    if progress.time_left_s is None or progress.runs_done == progress.runs:
        return ""
    return f", about {duration(progress.time_left_s)} left"
