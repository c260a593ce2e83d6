"""Tables as HTML: of scores, of any text, and as a notebook shows them."""

import html
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tempergat.comparison.html_report.page import (
    as_sentence,
    copy_buttons,
    scrolled,
    sort_heading,
)
from tempergat.comparison.paper import PaperCell
from tempergat.comparison.report.formats import (
    Table,
    as_latex,
    as_markdown,
    as_plain_csv,
    mean_and_std,
    percent,
    signed,
)
from tempergat.comparison.report.sentences import ONE_CLASS_MARK, notes_on_one_class
from tempergat.comparison.report.tables import (
    AGAINST_BACKBONE,
    AGAINST_HIGHEST,
    Column,
    notes_on_methods,
    result_columns,
    shown_comparisons,
)
from tempergat.comparison.results.result import (
    LARGEST_CLASS,
    DatasetResult,
    MethodResult,
)
from tempergat.nn import description_of

if TYPE_CHECKING:
    from tempergat.comparison.results.comparison import Comparison

_NUMBER = re.compile(r"[<+-]?\d[\d,]*(\.\d+)?")
_NONE = "-"
# Of the drawing of a method's runs in a notebook.
_WIDTH, _HEIGHT, _MARGIN = 150.0, 16.0, 6.0
_NUMBER_STYLE = ' style="text-align: right; white-space: nowrap"'
_WORD_STYLE = ' style="text-align: left; white-space: nowrap"'


def score_table(comparison: "Comparison", published: Mapping[str, PaperCell]) -> str:
    """The sortable table of scores, with buttons that change to differences.

    Args:
        comparison: The comparison on one graph.
        published: The paper's scores by method, where it has the dataset.
    """
    result, table = comparison.result, comparison.text_table
    columns = list(result_columns(result).values())
    if published:
        columns += _paper_columns(result, published)
    head = "".join(
        sort_heading(number, column.heading, column.about, _attribute(column))
        for number, column in enumerate(columns)
    )
    highest = None if result.best is None else result.best.summary.mean
    marks = {row: mark for (row, _), mark in table.marks.items()}
    body = ""
    for number, row in enumerate(result.results):
        badge = ""
        if row.summary.mean is not None and row.summary.mean == highest:
            badge = "best" if comparison.best_set == (row.method,) else "highest mean"
        body += _row(row, number, columns, badge, marks.get(number, ""))
    title = html.escape(table.title)
    notes = ""
    for note in _notes(result, table, published):
        # Only the view of differences has the column d.
        view = ' data-in="differences"' if note.startswith("d: ") else ""
        notes += f'<p class="note"{view}>{html.escape(as_sentence(note))}</p>'
    return (
        (_view_buttons(comparison.baseline) if shown_comparisons(result) else "")
        + scrolled(
            '<table class="scores" data-view="scores">'
            f'<caption class="hidden">{title}</caption>'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
            f"{_foot(result, columns)}</table>",
            table.title,
        )
        + f'<p class="note">{title}.</p>{notes}'
    )


def _paper_columns(
    result: DatasetResult, published: Mapping[str, PaperCell]
) -> list[Column]:
    """The paper's scores, and how far the result is from them."""
    theirs = [published.get(method) for method in result.methods]
    means = [None if cell is None else cell.mean for cell in theirs]
    scores = [
        _NONE if cell is None else mean_and_std(cell.mean, cell.std) for cell in theirs
    ]
    gains = [
        None if mean is None or row.summary.mean is None else row.summary.mean - mean
        for row, mean in zip(result.results, means, strict=True)
    ]
    about = "the paper's mean ± standard deviation"
    gained = [signed(gain) for gain in gains]
    return [
        Column("paper", scores, means, about=about),
        Column("to the paper", gained, gains, about="this mean minus the paper's"),
    ]


def _attribute(column: Column) -> str:
    """What shows a column in its view only, as HTML."""
    return f' data-in="{column.view}"' if column.view else ""


def _row(
    row: MethodResult, number: int, columns: Sequence[Column], badge: str, mark: str
) -> str:
    """A method's row; the badge is of the highest mean, the mark of its score."""
    cells = []
    for place, column in enumerate(columns):
        key, kind = column.keys[number], ""
        if not isinstance(key, str):
            key = "" if key is None else repr(float(key))
            is_score = place == 1 and mark
            kind = f' class="number {mark}"' if is_score else ' class="number"'
        text = html.escape(column.texts[number])
        data = f' data-key="{html.escape(key)}"'
        if place == 0:
            cells.append(_name_cell(row, text, data, badge))
            continue
        if column.heading in ("verdict", AGAINST_BACKBONE, AGAINST_HIGHEST):
            kind = f' class="verdict {text.replace(" ", "-")}"'
        cells.append(f"<td{kind}{data}{_attribute(column)}>{text}</td>")
    return f"<tr{' class=best' if badge else ''}>{''.join(cells)}</tr>"


def _name_cell(row: MethodResult, name: str, data: str, badge: str) -> str:
    """The method's name with its marks and what it is in words."""
    mark = ""
    if row.only_class:
        what = 'class="star" title="predicts one class"'
        mark = f" <span {what}>{ONE_CLASS_MARK}</span>"
    if badge:
        mark += f' <span class="chip">{badge}</span>'
    words = description_of(row.method)
    if words and words.lower() != row.method:
        mark += f" <small>{html.escape(words)}</small>"
    return f'<th scope="row"{data}{_tooltip(row.method)}>{name}{mark}</th>'


def _foot(result: DatasetResult, columns: Sequence[Column]) -> str:
    """The row of the largest class, which sorting leaves at the end."""
    if result.largest_class is None:
        return ""
    words = [percent(result.largest_class.mean), *(_NONE for _ in columns[2:])]
    cells = "".join(
        f"<td{_attribute(column)}>{word}</td>"
        for column, word in zip(columns[1:], words, strict=True)
    )
    return f'<tfoot><tr><th scope="row">{LARGEST_CLASS}</th>{cells}</tr></tfoot>'


def _notes(
    result: DatasetResult, table: Table, published: Mapping[str, PaperCell]
) -> list[str]:
    """The notes of the table, but for those that the page says elsewhere."""
    elsewhere = [*notes_on_one_class(result), *notes_on_methods(result.methods)]
    notes = [note for note in table.notes_on_marks if note not in elsewhere]
    if published:
        runs = max(cell.runs for cell in published.values())
        notes.append(
            f"The column paper is what the paper reports for {result.dataset}, over "
            f"{runs} runs with its own settings and split."
        )
    return notes


def _view_buttons(baseline: str | None) -> str:
    other = "the baseline" if baseline is None else baseline
    return (
        '<p class="buttons views" role="group" aria-label="What the table shows">'
        '<button type="button" data-view="scores" aria-pressed="true">'
        "mean ± std</button> "
        '<button type="button" data-view="differences" aria-pressed="false">'
        f"difference to {html.escape(other)}</button></p>"
    )


def plain_table(table: Table) -> str:
    """A sortable table of text, with its notes and buttons that copy it.

    A cell that begins with a number is sorted by that number.
    """
    head = "".join(sort_heading(n, name) for n, name in enumerate(table.columns))
    marks = table.marks
    lines = [
        "".join(
            _plain_cell(place, text, marks.get((number, place)))
            for place, text in enumerate(row)
        )
        for number, row in enumerate(table.all_rows)
    ]
    rows = [f"<tr>{line}</tr>" for line in lines]
    body, foot = (
        "".join(part) for part in (rows[: len(table.rows)], rows[len(table.rows) :])
    )
    notes = "".join(
        f'<p class="note">{html.escape(note)}</p>' for note in table.notes_on_marks
    )
    content = (
        f"<table><caption>{html.escape(table.title)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
        f"{f'<tfoot>{foot}</tfoot>' if foot else ''}</table>"
    )
    copies = {
        "LaTeX": as_latex(table),
        "Markdown": as_markdown(table),
        "CSV": as_plain_csv(table),
    }
    return scrolled(content, table.title) + notes + copy_buttons(table.title, copies)


def _plain_cell(place: int, words: str, mark: str | None) -> str:
    number = _NUMBER.match(words)
    key = "" if words == _NONE else words
    if number is not None:
        key = number[0].strip("<").replace(",", "")
    tag = 'th scope="row"' if place == 0 else "td"
    look = f' class="{mark}"' if mark else ""
    data = f' data-key="{html.escape(key)}"'
    return f"<{tag}{data}{look}>{html.escape(words)}</{tag.split()[0]}>"


def notebook_html(result: DatasetResult, table: Table, answer: str) -> str:
    """The answer and the table with every run, in the colours of the notebook.

    There are no scripts or style sheets in it.

    Args:
        result: The result of one dataset.
        table: Its table, with one row per method in the order of the result.
        answer: What the comparison shows, in one sentence.
    """
    scores = [list(row.scores.values()) for row in result.results]
    every = [score for row in scores for score in row]
    low, high = (min(every), max(every)) if every else (0.0, 0.0)
    span = f", {percent(low)} to {percent(high)}" if every else ""
    head = "".join(
        f"<th{_NUMBER_STYLE if place else _WORD_STYLE}>{html.escape(column)}</th>"
        for place, column in enumerate((*table.columns, f"every run{span}"))
    )
    marks = {row: (place, mark) for (row, place), mark in table.marks.items()}
    rows = zip(table.rows, scores, result.methods, strict=True)
    body = "".join(
        _notebook_row(
            cells, _runs_drawn(of_method, low, high - low), method, marks.get(number)
        )
        for number, (cells, of_method, method) in enumerate(rows)
    )
    body += "".join(_notebook_row(cells) for cells in table.footer)
    notes = "".join(
        f"<p><small>{html.escape(n)}</small></p>\n" for n in table.notes_on_marks
    )
    return (
        f"<p><strong>{html.escape(answer)}</strong></p>\n"
        f"<table>\n<caption>{html.escape(table.title)}</caption>\n"
        f"<thead>\n<tr>{head}</tr>\n</thead>\n<tbody>\n{body}</tbody>\n</table>\n"
        f"{notes}"
    )


def _notebook_row(
    cells: Sequence[str],
    drawing: str = "",
    method: str = "",
    mark: tuple[int, str] | None = None,
) -> str:
    """A row; that of the best score is bold, the second best score is underlined."""
    texts = list(map(html.escape, cells))
    place, name = mark or (0, "")
    if name == "second":
        texts[place] = f"<u>{texts[place]}</u>"
    content = f"<td{_WORD_STYLE}{_tooltip(method)}>{texts[0]}</td>" + "".join(
        f"<td{_NUMBER_STYLE}>{text}</td>" for text in texts[1:]
    )
    weight = ' style="font-weight: bold"' if name == "best" else ""
    return f"<tr{weight}>{content}<td>{drawing}</td></tr>\n"


def _tooltip(method: str) -> str:
    words = description_of(method)
    return f' title="{html.escape(words)}"' if words else ""


def _runs_drawn(scores: Sequence[float], low: float, span: float) -> str:
    """The runs as dots, their mean as a line."""
    if not scores:
        return ""

    def x(score: float) -> float:
        share = (score - low) / span if span else 0.5
        return _MARGIN + share * (_WIDTH - 2 * _MARGIN)

    middle, mean = _HEIGHT / 2, sum(scores) / len(scores)
    dots = "".join(
        f'<circle cx="{x(score):.1f}" cy="{middle:g}" r="3" opacity="0.45">'
        f"<title>{percent(score)}</title></circle>"
        for score in scores
    )
    return (
        f'<svg width="{_WIDTH:g}" height="{_HEIGHT:g}" fill="currentColor" role="img" '
        f'aria-label="{len(scores)} runs around {percent(mean)}">{dots}'
        f'<rect x="{x(mean) - 1:.1f}" y="1" width="2" height="{_HEIGHT - 2:g}"/></svg>'
    )
