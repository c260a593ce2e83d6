"""A table of text whose columns can be sorted, with buttons that copy it."""

import csv
import html
import io
import re

from tempergat.comparison.html_report.parts import copy_buttons, scrolled, sort_heading
from tempergat.comparison.report.formats import Table, as_latex, as_markdown

_NUMBER = re.compile(r"[<+-]?\d[\d,]*(\.\d+)?")
_NONE = "-"


def plain_table(table: Table, *, captioned: bool = True) -> str:
    """The table with its title as caption, the notes and the buttons below it.

    Args:
        table: The text. A cell that begins with a number is sorted by that number.
        captioned: Whether the title is shown; screen readers always have it.
    """
    head = "".join(sort_heading(n, name) for n, name in enumerate(table.columns))
    body, foot = (
        "".join(
            f"<tr>{''.join(_cell(place, cell) for place, cell in enumerate(row))}</tr>"
            for row in rows
        )
        for rows in (table.rows, table.footer)
    )
    notes = "".join(f'<p class="note">{html.escape(note)}</p>' for note in table.notes)
    shown = "" if captioned else ' class="hidden"'
    content = (
        f"<table><caption{shown}>{html.escape(table.title)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
        f"{f'<tfoot>{foot}</tfoot>' if foot else ''}</table>"
    )
    copies = {
        "LaTeX": as_latex(table),
        "Markdown": as_markdown(table),
        "CSV": _as_csv(table),
    }
    return scrolled(content, table.title) + notes + copy_buttons(table.title, copies)


def _as_csv(table: Table) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([table.columns, *table.all_rows])
    return text.getvalue()


def _cell(place: int, words: str) -> str:
    number = _NUMBER.match(words)
    key = words
    if words == _NONE:
        key = ""
    elif number is not None:
        key = number[0].strip("<").replace(",", "")
    tag = 'th scope="row"' if place == 0 else "td"
    return (
        f'<{tag} data-key="{html.escape(key)}">{html.escape(words)}</{tag.split()[0]}>'
    )
