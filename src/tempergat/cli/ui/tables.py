"""Tables on the terminal."""

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from tempergat.study.report import Table

# Left out first where a terminal is too narrow; the written tables have them all.
_DISPENSABLE = ("d", "runs", "p", "95 % interval")
_GAP = "  "
_STYLES = {"better": "green", "worse": "red"}
_WIDTH_OF_A_FILE = 200


def output_console() -> Console:
    """Standard output; wide where it is not a terminal."""
    return _console(sys.stdout.isatty(), stderr=False)


def error_console() -> Console:
    """Standard error, where progress goes."""
    return _console(sys.stderr.isatty(), stderr=True)


def _console(is_terminal: bool, stderr: bool) -> Console:
    return Console(
        stderr=stderr,
        width=None if is_terminal else _WIDTH_OF_A_FILE,
        highlight=False,
        markup=False,
    )


def print_table(console: Console, table: Table) -> None:
    """Print a table with its title and its notes."""
    console.print(Text(table.title, style="bold"))
    console.print(layout(table.columns, table.rows, console.width))
    for note in table.notes:
        console.print(Text(note, style="dim"))


def layout(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Text:
    """Rows under their headings, words to the left and numbers to the right.

    Args:
        columns: Headings.
        rows: Cells, as many to a row as there are headings.
        width: What there is room for; columns that matter least are left out until
            the rest fits.
    """
    widths = [
        max(len(text) for text in (heading, *(row[index] for row in rows)))
        for index, heading in enumerate(columns)
    ]
    shown = _fitting(columns, widths, width)
    to_the_right = {
        index
        for index in shown
        if any(row[index][:1] in "+-.0123456789<" and row[index] != "-" for row in rows)
    }
    laid_out = Text(no_wrap=True, overflow="crop")
    for row in (columns, *rows):
        cells = []
        for index in shown:
            room = widths[index]
            cell = (
                row[index].rjust(room)
                if index in to_the_right
                else row[index].ljust(room)
            )
            cells.append(Text(cell, "" if row is columns else _style(row[index])))
        line = Text(_GAP).join(cells)
        line.rstrip()
        laid_out.append_text(line)
        laid_out.append("\n")
        if row is columns:
            rule = sum(widths[index] for index in shown) + len(_GAP) * (len(shown) - 1)
            laid_out.append("─" * rule + "\n", style="dim")
    laid_out.right_crop(1)
    return laid_out


def _fitting(columns: Sequence[str], widths: Sequence[int], width: int) -> list[int]:
    shown = list(range(len(columns)))
    for name in _DISPENSABLE:
        if sum(widths[index] + len(_GAP) for index in shown) <= width:
            break
        shown = [index for index in shown if columns[index] != name]
    return shown


def _style(cell: str) -> str:
    return _STYLES.get(cell, "")
