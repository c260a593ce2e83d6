"""A comparison as a notebook shows it: the answer, then the table with every run."""

import html
from collections.abc import Sequence

from tempergat.comparison.report.formats import Table
from tempergat.comparison.report.words import percent
from tempergat.comparison.results import DatasetResult
from tempergat.nn import description_of

_WIDTH, _HEIGHT, _MARGIN = 150.0, 16.0, 6.0
_NUMBER = ' style="text-align: right; white-space: nowrap"'
_WORD = ' style="text-align: left; white-space: nowrap"'


def notebook_html(result: DatasetResult, table: Table, answer: str) -> str:
    """HTML without scripts or style sheets, in the colours of the notebook.

    Args:
        result: The result of one dataset.
        table: Its table, with one row per method in the order of the result.
        answer: What the comparison shows, in one sentence.
    """
    scores = [list(row.scores.values()) for row in result.results]
    strips, heading = _strips(scores)
    means = [row.summary.mean for row in result.results]
    best = max((mean for mean in means if mean is not None), default=None)
    head = "".join(
        f"<th{_style(place)}>{html.escape(column)}</th>"
        for place, column in enumerate((*table.columns, heading))
    )
    rows = zip(table.rows, strips, result.methods, means, strict=True)
    body = "".join(
        _row(cells, strip, method, is_best=mean is not None and mean == best)
        for cells, strip, method, mean in rows
    )
    body += "".join(_row(cells, "") for cells in table.footer)
    notes = "".join(f"<p><small>{html.escape(n)}</small></p>\n" for n in table.notes)
    return (
        f"<p><strong>{html.escape(answer)}</strong></p>\n"
        f"<table>\n<caption>{html.escape(table.title)}</caption>\n"
        f"<thead>\n<tr>{head}</tr>\n</thead>\n<tbody>\n{body}</tbody>\n</table>\n"
        f"{notes}"
    )


def _row(
    cells: Sequence[str], strip: str, method: str = "", *, is_best: bool = False
) -> str:
    first, *others = map(html.escape, cells)
    content = f"<td{_WORD}{_tooltip(method)}>{first}</td>" + "".join(
        f"<td{_NUMBER}>{cell}</td>" for cell in others
    )
    weight = ' style="font-weight: bold"' if is_best else ""
    return f"<tr{weight}>{content}<td>{strip}</td></tr>\n"


def _tooltip(method: str) -> str:
    words = description_of(method)
    return "" if words is None else f' title="{html.escape(words)}"'


def _style(place: int) -> str:
    return _NUMBER if place else _WORD


def _strips(scores: Sequence[Sequence[float]]) -> tuple[list[str], str]:
    """A drawing of each method's runs on one scale, and the heading of the column."""
    every = [score for row in scores for score in row]
    if not every:
        return ["" for _ in scores], "every run"
    low, high = min(every), max(every)
    heading = f"every run, {percent(low)} to {percent(high)}"
    return [_strip(row, low, high - low) for row in scores], heading


def _strip(scores: Sequence[float], low: float, span: float) -> str:
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
