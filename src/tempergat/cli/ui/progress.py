"""The progress of a sweep: a live table on a terminal, lines elsewhere."""

from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from tempergat.cli.ui.tables import layout
from tempergat.comparison import (
    OnProgress,
    Plan,
    Progress,
    ProgressLines,
    Tally,
    interval_text,
    mean_and_std,
    runs_done,
    time_left,
)

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


def make_display(console: Console, plan: Plan, *, quiet: bool) -> Display:
    """The display that fits: none, a live table, or lines.

    Args:
        console: Where to show it.
        plan: What is compared.
        quiet: Whether to show nothing.
    """
    tally = Tally(plan.methods, len(plan.seeds), plan.selection)
    if quiet:
        return _Silence()
    if console.is_terminal and not console.is_dumb_terminal:
        return _LiveTable(console, tally)
    return _Lines(console, tally)


class _Silence:
    """Shows nothing."""

    def __call__(self, progress: Progress) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class _Lines(_Silence):
    """A line for every group of runs that finishes."""

    def __init__(self, console: Console, tally: Tally) -> None:
        self._show = ProgressLines(console.print, tally)

    def __call__(self, progress: Progress) -> None:
        self._show(progress)


class _LiveTable(_Silence):
    """The table as it fills, a bar below it."""

    def __init__(self, console: Console, tally: Tally) -> None:
        self._console = console
        self._tally = tally
        self._progress = Progress(None, 0, 0)
        self._live = Live(
            console=console,
            get_renderable=self._render,
            refresh_per_second=4,
            transient=True,
            vertical_overflow="crop",
        )

    def __call__(self, progress: Progress) -> None:
        self._tally.add(progress.new)
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
        words = [runs_done(progress), self._tally.best]
        line = "; ".join(word for word in words if word) + time_left(progress)
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
        done = summary.runs + summary.failed
        return (
            method,
            mean_and_std(summary.mean, summary.std),
            interval_text(summary),
            f"{done}/{self._tally.runs}",
            state,
        )


def progress_lines(console: Console, name: str) -> OnProgress:
    """A callback that prints a line about a dataset after every group of runs."""
    shown: int | None = None

    def show(progress: Progress) -> None:
        nonlocal shown
        if progress.new or (shown is not None and progress.runs_done > shown):
            console.print(f"{name}: {runs_done(progress)}{time_left(progress)}")
        shown = progress.runs_done

    return show
