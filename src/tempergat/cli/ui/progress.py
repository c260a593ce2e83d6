"""How far a sweep is: a live table on a terminal, lines elsewhere."""

from collections.abc import Sequence
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from tempergat.base import counted, duration
from tempergat.cli.ui.tables import layout
from tempergat.stats import Summary, summarise
from tempergat.study.engine import OnProgress, Progress, Run
from tempergat.study.report import mean_and_std, percent

_COLUMNS = ("method", "score", "95 % interval", "runs", "")
_BAR_WIDTH = 40


class Display(Protocol):
    """Shows progress until it is closed."""

    def __call__(self, progress: Progress) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


def make_display(
    console: Console,
    methods: Sequence[str],
    runs: int,
    selection: str,
    *,
    quiet: bool,
) -> Display:
    """The display that fits: none, a live table, or lines.

    Args:
        console: Where to show it.
        methods: The methods compared, in order.
        runs: Runs of each.
        selection: Which rule's scores to show.
        quiet: Whether to show nothing.
    """
    tally = _Tally(methods, runs, selection)
    if quiet:
        return _Silence(tally)
    if console.is_terminal and not console.is_dumb_terminal:
        return _LiveTable(console, tally)
    return _Lines(console, tally)


class _Tally:
    """What has finished so far, by method."""

    def __init__(self, methods: Sequence[str], runs: int, selection: str) -> None:
        self.runs = runs
        self._selection = selection
        self._finished: dict[str, list[Run]] = {method: [] for method in methods}
        self._summaries: dict[str, Summary] = {}

    def add(self, runs: Sequence[Run]) -> None:
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
        return list(self._finished)

    @property
    def best(self) -> str:
        scored = [
            (summary.mean, method)
            for method, summary in self._summaries.items()
            if summary.mean is not None
        ]
        if not scored:
            return ""
        mean, method = max(scored)
        return f"best so far {method} {mean:.2f}"


class _Silence:
    def __init__(self, tally: _Tally) -> None:
        self._tally = tally

    def __call__(self, progress: Progress) -> None:
        self._tally.add(progress.new)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class _Lines(_Silence):
    """A line for every group that finishes."""

    def __init__(self, console: Console, tally: _Tally) -> None:
        super().__init__(tally)
        self._console = console
        self._waited_for: set[str] = set()

    def __call__(self, progress: Progress) -> None:
        self._tally.add(progress.new)
        if progress.method is None:
            if progress.runs_done:
                self._say(f"{_counted(progress)} are there already")
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
                f"{counted(summary.runs, 'run')}{failed}; {_counted(progress)}"
                f"{_left(progress)}"
            )

    def _say(self, line: str) -> None:
        self._console.print(line)


class _LiveTable(_Silence):
    """The table as it fills, a bar below it."""

    def __init__(self, console: Console, tally: _Tally) -> None:
        super().__init__(tally)
        self._console = console
        self._progress = Progress(None, 0, 0)
        self._live = Live(
            console=console,
            get_renderable=self._render,
            refresh_per_second=4,
            transient=True,
            vertical_overflow="crop",
        )

    def __call__(self, progress: Progress) -> None:
        super().__call__(progress)
        self._progress = progress

    def __enter__(self) -> Self:
        self._live.start(refresh=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()

    def _render(self) -> RenderableType:
        progress = self._progress
        rows = [self._row(method) for method in self._tally.methods]
        done = float(progress.runs_done)
        if progress.epochs:
            done += progress.group_runs * progress.epoch / progress.epochs
        words = [_counted(progress), self._tally.best]
        line = "; ".join(word for word in words if word) + _left(progress)
        filled = round(_BAR_WIDTH * done / max(progress.runs, 1))
        bar = Text("━" * filled, style="green")
        bar.append("━" * (_BAR_WIDTH - filled), style="dim")
        return Group(layout(_COLUMNS, rows, self._console.width), bar, Text(line))

    def _row(self, method: str) -> tuple[str, ...]:
        progress, summary = self._progress, self._tally[method]
        state = ""
        if method == progress.method and progress.waiting:
            state = "another process trains it"
        elif method == progress.method and progress.epoch:
            state = f"epoch {progress.epoch} of {progress.epochs}"
        elif summary is not None and summary.failed:
            state = f"{summary.failed} failed"
        if summary is None:
            return (method, "", "", f"0/{self._tally.runs}", state)
        interval = (
            ""
            if summary.low is None
            else f"{percent(summary.low)} to {percent(summary.high)}"
        )
        done = summary.runs + summary.failed
        return (
            method,
            mean_and_std(summary.mean, summary.std),
            interval,
            f"{done}/{self._tally.runs}",
            state,
        )


def progress_lines(console: Console, name: str) -> OnProgress:
    """A callback that prints a line about a dataset after every group of runs."""

    def show(progress: Progress) -> None:
        if progress.new:
            left = ""
            if progress.time_left_s:
                left = f", about {duration(progress.time_left_s)} left"
            console.print(f"{name}: {progress.runs_done} of {progress.runs} runs{left}")

    return show


def _counted(progress: Progress) -> str:
    return f"{progress.runs_done} of {counted(progress.runs, 'run')}"


def _left(progress: Progress) -> str:
    if progress.time_left_s is None or progress.runs_done == progress.runs:
        return ""
    return f", about {duration(progress.time_left_s)} left"
