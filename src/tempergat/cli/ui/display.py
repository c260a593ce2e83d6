"""Comparisons on the terminal: the progress, then the tables."""

import shlex
import sys
from collections.abc import Callable, Sequence

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from tempergat.cli.ui.output import echo, print_json
from tempergat.cli.ui.signals import resume_command
from tempergat.cli.ui.tables import SafeConsole, layout, print_table
from tempergat.comparison import (
    WIDEST_ANSWER,
    Comparison,
    Comparisons,
    Lines,
    Plan,
    Progress,
    interval_text,
    mean_and_std,
    runs_done,
    time_left,
)
from tempergat.training import Overrides

_COLUMNS = ("method", "score", "95 % interval", "runs", "")
_BAR_WIDTH = 40


class TerminalDisplay(Lines):
    """The progress as a live table on a terminal, as lines elsewhere, and the results.

    Args:
        plans: What is compared.
        console: Where progress goes.
        train_options: What a command `train` that repeats a run needs beside recipe and
            settings; None where none can.
        quiet: Whether to show no progress.
        as_json: Whether tables are JSON, which is printed at the end.
        verbose: Whether tables have all their notes.
        learned: Whether learned temperatures and gates are printed too.
    """

    def __init__(
        self,
        plans: Sequence[Plan],
        console: Console,
        train_options: Sequence[str] | None = None,
        *,
        quiet: bool,
        as_json: bool,
        verbose: bool = False,
        learned: bool = False,
    ) -> None:
        super().__init__(lambda line: None if quiet else console.print(line))
        self._plans = plans
        self._console = console
        self._train_options = train_options
        self._as_json = as_json
        self._verbose = verbose
        self._learned = learned
        self._is_first = True
        self._live: Live | None = None
        can_move_cursor = console.is_terminal and not console.is_dumb_terminal
        self._is_live = can_move_cursor and not quiet

    def start(self, plan: Plan, lines: Sequence[str]) -> None:
        super().start(plan, lines)
        self._plan = plan
        self._progress = Progress(None, 0, 0)
        if self._is_live:
            self._live = Live(
                console=self._console,
                get_renderable=self._render,
                refresh_per_second=4,
                transient=True,
                vertical_overflow="crop",
            )
            self._live.start(refresh=True)

    def progress(self, progress: Progress) -> None:
        if self._live is None:
            super().progress(progress)
        else:
            self.add(progress.new)
            self._progress = progress

    def end(self) -> None:
        if self._live is not None:
            self._live.stop()

    def result(self, comparison: Comparison, *, partial: bool = False) -> None:
        if self._as_json:
            if partial:
                echo(comparison.to_json())
            return
        if not self._is_first and not partial:
            echo("")
        self._is_first = False
        train = self._train(comparison)
        print_comparison(
            comparison, verbose=self._verbose, learned=self._learned, train=train
        )

    def _train(self, comparison: Comparison) -> str | None:
        """The command that repeats the simplest of the best methods."""
        method = comparison.simplest or comparison.best
        if method is None or self._train_options is None:
            return None
        found = [str(path) for path in comparison.files if path.suffix == ".yaml"]
        recipe = found[0] if found else comparison.recipe_of(method)
        words = ["tempergat", "train", str(self._plan.options.graph), "--method"]
        words += [method, "--recipe", recipe]
        words += self._plan.overrides.options_for(method)
        return shlex.join([*words, *self._train_options])

    def stopped(
        self,
        finished: Sequence[Comparison],
        finished_part: Callable[[], Comparison | None],
    ) -> None:
        part = finished_part()
        done = [*finished, *([] if part is None else [part])]
        if self._as_json and done:
            several = len(self._plans) > 1
            echo((Comparisons(tuple(done)) if several else done[0]).to_json())
        elif part is not None:
            # The answer may change with the rest of the runs.
            print_comparison(part, with_answer=False, verbose=self._verbose)
        words = "Stopped before the first runs finished. To continue:"
        if done:
            total = sum(plan.total_runs for plan in self._plans)
            runs = sum(len(one.every_run) for one in done)
            words = (
                f"Stopped with {runs} of {total} runs done; they are kept. Differences "
                "and verdicts may change with the rest. To continue:"
            )
        elif self._plans[0].options.tune is not None:
            words = (
                "Stopped during the search for settings; its runs are kept. To "
                "continue:"
            )
        self._console.print(words)
        self._console.print(f"  {resume_command()}", soft_wrap=True)

    def _render(self) -> RenderableType:
        """The table as it fills, a bar below it."""
        progress = self._progress
        rows = [self._row(method) for method in self._plan.methods]
        done = float(progress.runs_done)
        if progress.epochs:
            done += progress.group_runs * progress.epoch / progress.epochs
        line = runs_done(progress)
        means = {m: s.mean for m, s in self.summaries.items() if s.mean is not None}
        if means:
            metric = self.metric
            _, method = max((metric.merit(mean), m) for m, mean in means.items())
            line += f"; best so far {method} {metric.text(means[method])}"
        filled = round(_BAR_WIDTH * done / max(progress.runs, 1))
        bar = Text("━" * filled, style="green")
        bar.append("━" * (_BAR_WIDTH - filled), style="dim")
        return Group(
            layout(_COLUMNS, rows, self._console.width),
            bar,
            Text(line + time_left(progress)),
        )

    def _row(self, method: str) -> tuple[str, ...]:
        progress, summary = self._progress, self.summaries.get(method)
        done = len(self._finished[method])
        runs = len(self._plan.seeds) * sum(
            config.method == method for config in self._plan.configs
        )
        state = ""
        if method == progress.method and progress.waiting:
            state = "another process trains it"
        elif method == progress.method and progress.epoch:
            state = f"epoch {progress.epoch} of {progress.epochs}"
        elif summary is not None and summary.failed:
            state = f"{summary.failed} failed"
        if summary is None:
            return (method, "", "", f"0/{runs}", state)
        return (
            method,
            mean_and_std(summary.mean, summary.std, self.metric.digits),
            interval_text(summary, self.metric),
            f"{done}/{runs}",
            state,
        )


def print_comparison(
    comparison: Comparison,
    *,
    with_answer: bool = True,
    verbose: bool = False,
    learned: bool = False,
    train: str | None = None,
) -> None:
    """Print the table of one graph, the files that were written, and the answer.

    Args:
        comparison: The comparison.
        with_answer: Whether the answer is printed; it comes last.
        verbose: Whether all notes of the table are printed.
        learned: Whether learned temperatures and gates are printed too.
        train: The command that repeats the best method.
    """
    print_table(SafeConsole(), comparison.text_table, verbose=verbose)
    if learned and comparison.learned:
        echo("")
        print_table(SafeConsole(), comparison.learned_table)
    elif learned:
        echo("learned  no method here has a temperature or a gate")
    _print_files(comparison)
    if comparison.choice:
        echo(comparison.choice)
    if not with_answer:
        return
    for claim in comparison.claims:
        echo(claim)
    more = _command_for_more(comparison)
    if more is not None:
        echo(f"more     {more}")
    if train is not None:
        echo(f"repeat   {train}")
    console = SafeConsole()
    answer = comparison.answer.in_two_lines(min(console.width, WIDEST_ANSWER))
    console.print(answer, soft_wrap=not console.is_terminal)


def _command_for_more(comparison: Comparison) -> str | None:
    """The command that continues with as many seeds or splits as the answer names."""
    fewer, is_trained = comparison.result.fewer, bool(comparison.files)
    if fewer is None or not is_trained:
        return None
    changed = {"--runs": str(fewer[0])}
    if comparison.result.splits > 1:
        # Splits that come with the graph are as many as there are.
        if "--splits" not in sys.argv:
            return None
        changed["--splits"] = changed["--runs"]
    return resume_command(changed)


def _print_files(comparison: Comparison) -> None:
    if not comparison.files:
        echo(f"settings {comparison.recipe}, on {comparison.device}")
        return
    *written, _, picture, report = comparison.files
    recipes = [path for path in written if path.suffix == ".yaml"]
    tables = [path for path in written if path not in recipes]
    echo(f"report   {report}")
    echo(f"picture  {picture}")
    echo(f"tables   {', '.join(str(path) for path in tables)}")
    echo(f"runs     {comparison.store}")
    echo(f"recipe   {comparison.recipe}{Overrides(comparison.settings).words}")
    if recipes:
        tried = len(comparison.tuned[0].trials)
        echo(
            f"tuned    each method has the best of {tried} settings by validation "
            f"score; for --recipe: {', '.join(map(str, recipes))}"
        )


def print_result(
    result: Comparison | Comparisons, *, as_json: bool, verbose: bool = False
) -> None:
    """Print what the display has not shown: JSON, or a summary of graphs."""
    if as_json:
        print_json(result.facts)
    elif isinstance(result, Comparisons):
        echo("")
        print_table(SafeConsole(), result.summary, verbose=verbose)
        if result.files:
            *others, report = result.files
            echo(f"report   {report}")
            echo(f"summary  {', '.join(str(path) for path in others)}")
        echo(result.verdict)
