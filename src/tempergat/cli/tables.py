"""Tables on the terminal."""

import sys
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from tempergat.study.report import Table

# Left out first where a terminal is too narrow; the written tables have them all.
_DISPENSABLE = ("d", "runs", "p", "95 % interval")
_PADDING = 2
_VERDICT_STYLES = {"better": "green", "worse": "red", "failed": "red"}


def output_console() -> Console:
    """Standard output; as wide as need be where it is not a terminal."""
    return _console(sys.stdout.isatty(), stderr=False)


def error_console() -> Console:
    """Standard error, where progress goes."""
    return _console(sys.stderr.isatty(), stderr=True)


def _console(is_terminal: bool, stderr: bool) -> Console:
    width = None if is_terminal else 200
    return Console(stderr=stderr, width=width, highlight=False, markup=False)


def print_table(console: Console, table: Table) -> None:
    """Print a table with its title and its notes."""
    console.print(Text(table.title, style="bold"))
    console.print(layout(table.columns, table.rows, console.width))
    for note in table.notes:
        console.print(Text(note, style="dim"))


def layout(
    columns: Sequence[str], rows: Sequence[Sequence[str]], width: int
) -> RichTable:
    """Rows and columns as rich lays them out, within a width where possible."""
    shown = _fitting(columns, rows, width)
    laid_out = RichTable(
        box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, _PADDING, 0, 0), expand=False
    )
    for position, index in enumerate(shown):
        laid_out.add_column(
            columns[index],
            justify="left" if position in (0, len(shown) - 1) else "right",
            no_wrap=True,
        )
    for row in rows:
        laid_out.add_row(
            *(Text(row[index], _VERDICT_STYLES.get(row[index], "")) for index in shown)
        )
    return laid_out


def _fitting(
    columns: Sequence[str], rows: Sequence[Sequence[str]], width: int
) -> list[int]:
    widths = [
        max(len(columns[index]), *(len(row[index]) for row in rows), 0)
        for index in range(len(columns))
    ]
    shown = list(range(len(columns)))
    for name in _DISPENSABLE:
        if sum(widths[index] + _PADDING for index in shown) <= width:
            break
        shown = [index for index in shown if columns[index] != name]
    return shown
