"""Comparisons on the terminal: trained graph by graph, and shown."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tempergat.cli.ui.json_output import print_json
from tempergat.cli.ui.output import echo
from tempergat.cli.ui.stopping import exit_status, resume_command, stoppable

if TYPE_CHECKING:
    from rich.console import Console

    from tempergat.cli.ui.progress import Display
    from tempergat.comparison import (
        Comparison,
        Comparisons,
        FinishedShard,
        Place,
        Prepared,
        Shard,
        Store,
    )


@dataclass(frozen=True)
class GraphSweep:
    """The graphs of a command, trained on one after another.

    Attributes:
        prepared: The graphs.
        where: Where to train.
        out: The folder of the store and the tables.
        stderr: Where progress goes.
        quiet: Whether to show no progress.
        as_json: Whether the tables are JSON, which is printed at the end.
    """

    prepared: "Sequence[Prepared]"
    where: "Place"
    out: Path
    stderr: "Console"
    quiet: bool
    as_json: bool

    def run(self) -> "list[Comparison]":
        """Train on every graph and show its table.

        Raises:
            typer.Exit: The command was stopped.
            OutOfMemory: A single run does not fit in memory.
        """
        finished: list[Comparison] = []
        for one, store, display in self._opened():
            finished.append(self._compare(one, store, display, finished))
            if not self.as_json:
                if len(finished) > 1:
                    echo("")
                _show(finished[-1], self.as_json)
        return finished

    def run_shards(self, shard: "Shard") -> "FinishedShard":
        """Train one shard of the runs of every graph."""
        from tempergat.comparison import FinishedShard, run_shard

        done = []
        for one, store, display in self._opened():
            with stoppable(), display:
                done.append(
                    run_shard(one.plan, one.graphs, store, self.where, shard, display)
                )
        return FinishedShard.together(done)

    def _opened(self) -> "Iterator[tuple[Prepared, Store, Display]]":
        """Every graph when its turn has come, the store, and what shows progress."""
        from tempergat.cli.ui.progress import make_display
        from tempergat.comparison import STORE_NAME, Store, opening_lines

        for one in self.prepared:
            if not self.quiet:
                for line in opening_lines(one.plan, one.graphs, self.where):
                    self.stderr.print(line)
            with Store(self.out / STORE_NAME) as store:
                yield one, store, make_display(self.stderr, one.plan, quiet=self.quiet)

    def _compare(
        self,
        one: "Prepared",
        store: "Store",
        display: "Display",
        finished: "Sequence[Comparison]",
    ) -> "Comparison":
        from tempergat.comparison import finished_part, run_plan, search_lines
        from tempergat.training import OutOfMemory

        what = (one.plan, one.graphs, store, self.where)
        try:
            say = _nothing if self.quiet else self.stderr.print
            with display:
                comparison = run_plan(*what, display, search_lines(say))
        except KeyboardInterrupt as stop:
            self._show_so_far(finished_part(*what), finished)
            raise typer.Exit(exit_status(stop)) from stop
        except OutOfMemory:
            # The other methods have finished.
            part = finished_part(*what)
            if part is not None:
                _show(part.written_to(self.out, resume_command()), self.as_json)
            raise
        return comparison.written_to(self.out, resume_command())

    def _show_so_far(
        self, part: "Comparison | None", finished: "Sequence[Comparison]"
    ) -> None:
        """Show what is done, and how to continue."""
        from tempergat.comparison import Comparisons

        done = [*finished, *([] if part is None else [part])]
        if self.as_json and done:
            together = Comparisons(tuple(done))
            is_one = len(self.prepared) == 1
            echo(done[0].to_json() if is_one else together.to_json())
        elif part is not None:
            # The answer may change with the rest of the runs.
            _show(part, self.as_json, with_answer=False)
        if done:
            total = sum(one.plan.total_runs for one in self.prepared)
            self.stderr.print(
                f"Stopped with {sum(len(found.runs) for found in done)} of {total} "
                "runs done; they are kept. Differences and verdicts may change with "
                "the rest. To continue:"
            )
        elif self.prepared[0].plan.tune is not None:
            self.stderr.print(
                "Stopped during the search for settings; its runs are kept. To "
                "continue:"
            )
        else:
            self.stderr.print("Stopped before the first runs finished. To continue:")
        self.stderr.print(f"  {resume_command()}", soft_wrap=True)


def _nothing(line: str) -> None: ...


def _show(comparison: "Comparison", as_json: bool, *, with_answer: bool = True) -> None:
    from tempergat.cli.ui.tables import output_console, print_table

    if as_json:
        echo(comparison.to_json())
        return
    answer = comparison.verdict if with_answer else None
    print_table(output_console(), comparison.text_table, answer)
    if comparison.files:
        *written, _, picture, report = comparison.files
        recipes = [path for path in written if path.suffix == ".yaml"]
        tables = [path for path in written if path not in recipes]
        echo(f"report   {report}")
        echo(f"picture  {picture}")
        echo(f"tables   {', '.join(str(path) for path in tables)}")
        echo(f"runs     {comparison.store}")
        given = ", ".join(f"{k}={v}" for k, v in comparison.settings.items())
        echo(f"recipe   {comparison.recipe}{f' with {given}' if given else ''}")
        if recipes:
            echo(f"tuned    {', '.join(map(str, recipes))}; for --recipe")


def show_shard(shard: "FinishedShard", as_json: bool) -> None:
    if as_json:
        print_json(shard.facts)
    else:
        echo(str(shard))
    if shard.failed:
        raise typer.Exit(1)


def show_together(comparisons: "Comparisons", as_json: bool) -> None:
    """Print the summary of several graphs; everything as JSON."""
    from tempergat.cli.ui.tables import output_console, print_table

    if as_json:
        echo(comparisons.to_json())
        return
    echo("")
    print_table(output_console(), comparisons.summary, comparisons.verdict)
    if comparisons.files:
        *others, report = comparisons.files
        echo(f"report   {report}")
        echo(f"summary  {', '.join(str(path) for path in others)}")


def show_stored(
    table: Path, datasets: "Sequence[str]", baseline: str | None, as_json: bool
) -> None:
    """Print the comparisons of a store; the list of them as JSON.

    With several names, their summary follows, if there is one table of each.
    """
    from tempergat.comparison import Comparisons, stored_comparisons

    chosen: Sequence[str | None] = datasets or [None]
    found = [c for name in chosen for c in stored_comparisons(table, name, baseline)]
    together = Comparisons(tuple(found)) if len(datasets) > 1 else None
    if as_json:
        print_json([comparison.facts for comparison in found])
        return
    for number, comparison in enumerate(found):
        if number:
            echo("")
        _show(comparison, as_json)
        echo(f"settings {comparison.recipe}, on {comparison.device}")
    if together is not None and len(found) == len(datasets):
        show_together(together, as_json)
