"""Tables on the terminal."""

import sys
from collections.abc import Collection, Mapping, Sequence
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


def output_console() -> Console:
    """Standard output; wide where it is not a terminal."""
    return _console(sys.stdout.isatty(), stderr=False)


def error_console() -> Console:
    """Standard error, where progress goes."""
    return _console(sys.stderr.isatty(), stderr=True)


class _SafeConsole(Console):
    """A console that shows control characters in texts instead of sending them."""

    def print(self, *objects: Any, **options: Any) -> None:
        shown = (
            printable(item, keep="\n") if isinstance(item, str) else item
            for item in objects
        )
        super().print(*shown, **options)


def _console(is_terminal: bool, stderr: bool) -> Console:
    return _SafeConsole(
        stderr=stderr,
        width=None if is_terminal else _WIDTH_OF_A_FILE,
        highlight=False,
        markup=False,
    )


def print_table(
    console: Console,
    table: Table,
    answer: str | None = None,
    said: Collection[str] = (),
) -> None:
    """Print a table with its title and its notes.

    Args:
        console: Where to print.
        table: The table.
        answer: What it shows, in one sentence; printed directly below the rows.
        said: Notes that stand above on the same screen, and are not printed again.
    """
    console.print(Text(printable(table.title), style="bold"))
    console.print(layout(table.columns, table.all_rows, console.width, table.marks))
    shown = _fitting(table.columns, table.all_rows, console.width)
    hidden = [name for at, name in enumerate(table.columns) if at not in shown]
    if answer is not None:
        console.print(Text(printable(answer)), soft_wrap=True)
    for note in table.notes_without(hidden):
        if console.is_terminal and note in said:
            continue
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
    laid_out = Text(no_wrap=True, overflow="crop")
    _append_line(laid_out, [Text(cell) for cell in heading])
    laid_out.append("─" * len(_GAP.join(heading)) + "\n", style="dim")
    for row, line in enumerate(cells):
        looks = [marks.get((row, column), "") for column in shown]
        _append_line(laid_out, list(map(_cell, line, looks)))
    laid_out.right_crop(1)
    return laid_out


def _cell(words: str, mark: str) -> Text:
    """A padded cell in the style of its mark or its words."""
    cell = Text(words)
    start = len(words) - len(words.lstrip())
    style = _STYLES.get(mark or words.strip(), "")
    cell.stylize(style, start, len(words.rstrip()))
    return cell


def _append_line(text: Text, cells: Sequence[Text]) -> None:
    line = Text(_GAP).join(cells)
    line.rstrip()
    text.append_text(line)
    text.append("\n")


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
