"""Tables on the terminal."""

import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from rich.console import Console
from rich.text import Text

from tempergat.base import printable
from tempergat.comparison import Table, aligned

# Left out in this order where a terminal is too narrow; the written tables have all.
_DISPENSABLE = ("d", "runs", "p", "95 % interval")
_GAP = "  "
_STYLES = {"better": "green", "worse": "red", "best": "bold", "second": "underline"}
_WIDTH_OF_A_FILE = 200


class SafeConsole(Console):
    """A console that shows control characters in texts instead of sending them.

    It is wide where it is not a terminal.

    Args:
        stderr: Whether it is standard error, where progress goes, and not standard
            output.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        stream = sys.stderr if stderr else sys.stdout
        width = None if stream.isatty() else _WIDTH_OF_A_FILE
        super().__init__(stderr=stderr, width=width, highlight=False, markup=False)

    def print(self, *objects: Any, **options: Any) -> None:
        shown = (
            printable(item, keep="\n") if isinstance(item, str) else item
            for item in objects
        )
        super().print(*shown, **options)


def print_table(
    console: Console,
    table: Table,
    *,
    verbose: bool = True,
) -> None:
    """Print a table with its title and its notes; the urgent ones unless verbose."""
    console.print(Text(printable(table.title), style="bold"))
    console.print(layout(table.columns, table.all_rows, console.width, table.marks))
    shown = _fitting(table.columns, table.all_rows, console.width)
    hidden = [name for at, name in enumerate(table.columns) if at not in shown]
    for note in table.notes_without(hidden):
        if verbose or note in table.urgent:
            console.print(Text(printable(note), style="dim"))


def layout(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int,
    marks: Mapping[tuple[int, int], str] = MappingProxyType({}),
) -> Text:
    """Rows under their headings, words to the left and numbers to the right.

    Args:
        columns: Headings.
        rows: Cells, one for each heading.
        width: Characters to a line; the least important columns are left out until
            the rest fits.
        marks: `best` and `second` by row and column.
    """
    columns, *rows = ([printable(cell) for cell in line] for line in (columns, *rows))
    shown = _fitting(columns, rows, width)
    heading, *cells = aligned([[line[i] for i in shown] for line in (columns, *rows)])
    laid_out = Text(_GAP.join(heading).rstrip() + "\n", no_wrap=True, overflow="crop")
    laid_out.append("─" * len(_GAP.join(heading)), style="dim")
    for row, line in enumerate(cells):
        start = len(laid_out) + 1
        laid_out.append("\n" + _GAP.join(line).rstrip())
        for column, words in zip(shown, line, strict=True):
            style = _STYLES.get(marks.get((row, column)) or words.strip(), "")
            before = len(words) - len(words.lstrip())
            laid_out.stylize(style, start + before, start + len(words.rstrip()))
            start += len(words) + len(_GAP)
    return laid_out


def _fitting(
    columns: Sequence[str], rows: Sequence[Sequence[str]], width: int
) -> list[int]:
    """The columns that fit, by their positions."""
    widths = [
        max(len(line[index]) for line in (columns, *rows))
        for index in range(len(columns))
    ]
    shown = list(range(len(columns)))
    for name in _DISPENSABLE:
        if sum(widths[index] + len(_GAP) for index in shown) <= width:
            break
        shown = [index for index in shown if columns[index] != name]
    return shown
