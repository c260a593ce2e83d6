"""The sortable table of scores."""

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tempergat.comparison.html_report.parts import as_sentence, scrolled, sort_heading
from tempergat.comparison.largest_class import LARGEST_CLASS, LargestClass
from tempergat.comparison.report.one_class import ONE_CLASS_MARK, notes_on_one_class
from tempergat.comparison.report.tables import (
    AGAINST_BACKBONE,
    AGAINST_HIGHEST,
    against_highest,
    has_both_questions,
    interval_text,
    notes_on_methods,
    shown_comparisons,
    verdict_word,
)
from tempergat.comparison.report.words import mean_and_std, p_value, percent, signed
from tempergat.comparison.results import METRIC_NAMES, MethodResult
from tempergat.nn import description_of

if TYPE_CHECKING:
    from tempergat.comparison.html_report.section import Section

_NONE = "-"
_VERDICT = "verdict"


class _Column(NamedTuple):
    """A column: its heading, and each row's text and sort key.

    `view` names the one of the two views that has it; None for both.
    """

    heading: str
    texts: Sequence[str]
    keys: Sequence[float | str | None]
    view: str | None = None
    explained: str = ""


def score_table(section: "Section") -> str:
    """The table, with buttons that change between scores and differences.

    Args:
        section: One graph's comparison.
    """
    rows = section.result.results
    best = section.result.best
    highest = None if best is None else best.summary.mean
    columns = _columns(section)
    head = "".join(
        sort_heading(number, column.heading, column.explained, _view(column))
        for number, column in enumerate(columns)
    )
    body = "".join(
        _row(
            row,
            number,
            columns,
            badge=_badge(row, section.best) if row.summary.mean == highest else "",
        )
        for number, row in enumerate(rows)
    )
    compared = bool(shown_comparisons(section.result))
    return (
        (_view_buttons(section.baseline) if compared else "")
        + scrolled(
            '<table class="scores" data-view="scores">'
            f'<caption class="hidden">{html.escape(section.table.title)}</caption>'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
            f"{_foot(section.result.largest_class, columns)}</table>",
            section.table.title,
        )
        + f'<p class="note">{html.escape(section.table.title)}.</p>'
        + "".join(
            f'<p class="note"{_view_of(note)}>{html.escape(as_sentence(note))}</p>'
            for note in _notes(section)
        )
    )


def _notes(section: "Section") -> list[str]:
    """The notes of the table, but for those that the page says elsewhere."""
    result = section.result
    said = [*notes_on_one_class(result), *notes_on_methods(result.methods)]
    notes = [note for note in section.table.notes if note not in said]
    return [*notes, *_note_on_paper(section)]


def _view_of(note: str) -> str:
    """Only the view of differences has the column d."""
    return ' data-in="differences"' if note.startswith("d: ") else ""


def _columns(section: "Section") -> list[_Column]:
    rows = section.result.results
    metric = METRIC_NAMES[section.result.metric]
    summaries = [row.summary for row in rows]
    shown = shown_comparisons(section.result)
    compared = [shown.get(row.method) for row in rows]
    verdicts = [verdict_word(section.result, row.method) for row in rows]
    standing = [against_highest(section.result, row.method) for row in rows]
    of_best = _Column(
        AGAINST_HIGHEST, standing, standing, None, "tests of all pairs, Holm-corrected"
    )
    is_second = has_both_questions(section.result)
    columns = [
        _Column("method", [row.method for row in rows], [row.method for row in rows]),
        _Column(
            metric,
            [mean_and_std(s.mean, s.std) for s in summaries],
            [s.mean for s in summaries],
            "scores",
            "mean ± standard deviation over runs",
        ),
        _Column(
            "95 % interval",
            [interval_text(s, section.result.splits) for s in summaries],
            [s.low for s in summaries],
            "scores",
        ),
        *([of_best] if is_second else []),
        _Column(
            "difference",
            [_NONE if c is None else signed(c.difference) for c in compared],
            [None if c is None else c.difference for c in compared],
            "differences",
            "mean of paired differences, in points",
        ),
        _Column(
            "its 95 % interval",
            [_NONE if c is None else _interval(c.low, c.high) for c in compared],
            [None if c is None else c.low for c in compared],
            "differences",
        ),
        _Column(
            "against",
            [_NONE if c is None else c.baseline for c in compared],
            ["" if c is None else c.baseline for c in compared],
            "differences",
        ),
        _Column(
            "p",
            [_NONE if c is None else p_value(c.t_p_holm) for c in compared],
            [None if c is None else c.t_p_holm for c in compared],
            "differences",
            "paired t-test, Holm-corrected",
        ),
        _Column(
            "d",
            [_NONE if c is None else signed(c.effect_size) for c in compared],
            [None if c is None else c.effect_size for c in compared],
            "differences",
            "Cohen's d of the pairs",
        ),
        _Column(AGAINST_BACKBONE if is_second else _VERDICT, verdicts, verdicts),
        _Column("runs", [str(s.runs) for s in summaries], [s.runs for s in summaries]),
    ]
    if any(s.failed for s in summaries):
        columns.append(
            _Column(
                "failed",
                [str(s.failed) for s in summaries],
                [s.failed for s in summaries],
            )
        )
    if section.published:
        columns += _published_columns(section)
    return columns


def _published_columns(section: "Section") -> list[_Column]:
    rows = section.result.results
    theirs = [section.published.get(row.method) for row in rows]
    differences = [
        None
        if cell is None or row.summary.mean is None
        else row.summary.mean - cell.mean
        for row, cell in zip(rows, theirs, strict=True)
    ]
    return [
        _Column(
            "paper",
            [_NONE if c is None else mean_and_std(c.mean, c.std) for c in theirs],
            [None if c is None else c.mean for c in theirs],
            None,
            "the paper's mean ± standard deviation",
        ),
        _Column(
            "to the paper",
            [_NONE if d is None else signed(d) for d in differences],
            differences,
            None,
            "this mean minus the paper's",
        ),
    ]


def _note_on_paper(section: "Section") -> list[str]:
    if not section.published:
        return []
    runs = max(cell.runs for cell in section.published.values())
    return [
        f"The column paper is what the paper reports for {section.result.dataset}, "
        f"over {runs} runs with its own settings and split."
    ]


def _interval(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return _NONE
    return f"{signed(low)} to {signed(high)}"


def _badge(row: MethodResult, best: str | None) -> str:
    """What stands beside the highest mean."""
    if row.summary.mean is None:
        return ""
    return "best" if row.method == best else "highest mean"


def _row(
    row: MethodResult, number: int, columns: Sequence[_Column], *, badge: str
) -> str:
    cells = []
    for place, column in enumerate(columns):
        key = column.keys[number]
        written = html.escape(column.texts[number])
        data = f' data-key="{html.escape(_key(key))}"'
        if place == 0:
            mark = f' <span class="chip">{badge}</span>' if badge else ""
            star = ""
            if row.only_class:
                what = 'class="star" title="predicts one class"'
                star = f" <span {what}>{ONE_CLASS_MARK}</span>"
            words = description_of(row.method)
            about = f' title="{html.escape(words)}"' if words else ""
            shown = ""
            if words and words.lower() != row.method:
                shown = f" <small>{html.escape(words)}</small>"
            cells.append(
                f'<th scope="row"{data}{about}>{written}{star}{mark}{shown}</th>'
            )
            continue
        kind = ' class="number"' if not isinstance(key, str) else ""
        if column.heading in (_VERDICT, AGAINST_BACKBONE, AGAINST_HIGHEST):
            kind = f' class="verdict {written.replace(" ", "-")}"'
        cells.append(f"<td{kind}{data}{_view(column)}>{written}</td>")
    return f"<tr{' class=best' if badge else ''}>{''.join(cells)}</tr>"


def _foot(largest: LargestClass | None, columns: Sequence[_Column]) -> str:
    """The row of the largest class, which sorting leaves at the end."""
    if largest is None:
        return ""
    cells = [f'<th scope="row">{LARGEST_CLASS}</th>']
    for place, column in enumerate(columns[1:]):
        words = percent(largest.mean) if place == 0 else _NONE
        cells.append(f"<td{_view(column)}>{words}</td>")
    return f"<tfoot><tr>{''.join(cells)}</tr></tfoot>"


def _key(key: float | str | None) -> str:
    return "" if key is None else key if isinstance(key, str) else repr(float(key))


def _view(column: _Column) -> str:
    return "" if column.view is None else f' data-in="{column.view}"'


def _view_buttons(baseline: str | None) -> str:
    other = "the baseline" if baseline is None else baseline
    return (
        '<p class="buttons views" role="group" aria-label="What the table shows">'
        '<button type="button" data-view="scores" aria-pressed="true">'
        "mean ± std</button> "
        '<button type="button" data-view="differences" aria-pressed="false">'
        f"difference to {html.escape(other)}</button></p>"
    )
