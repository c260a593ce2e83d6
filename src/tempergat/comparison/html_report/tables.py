"""Tables as HTML: what that of scores shows, and tables as a notebook shows them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tempergat.comparison.html_report.page import rendered
from tempergat.comparison.html_report.svg import Scale
from tempergat.comparison.paper import PaperCell
from tempergat.comparison.report.formats import Table, mean_and_std, signed
from tempergat.comparison.report.sentences import (
    answer,
    claims,
    notes_on_one_class,
)
from tempergat.comparison.report.tables import (
    AGAINST_BACKBONE,
    COULD_BE_BEST,
    Column,
    notes_on_methods,
    result_columns,
    shown_comparisons,
)
from tempergat.comparison.results.result import LARGEST_CLASS, DatasetResult

if TYPE_CHECKING:
    from tempergat.comparison.results.comparison import Comparison

# Where the runs of a method are drawn in a notebook.
_LEFT, _RIGHT = 6.0, 144.0


def score_table(
    comparison: "Comparison", published: Mapping[str, PaperCell]
) -> dict[str, Any]:
    """What the template of the table of scores shows.

    Args:
        comparison: The comparison on one graph.
        published: The paper's scores by method, where it has the dataset.
    """
    result, table = comparison.result, comparison.text_table
    named = result_columns(result)
    # A phone shows two columns.
    said = COULD_BE_BEST if COULD_BE_BEST in named else "verdict"
    first = {name: named[name] for name in ("method", said) if name in named}
    columns = list({**first, **named}.values())
    # The page says these elsewhere.
    elsewhere = [*notes_on_one_class(result), *notes_on_methods(result.methods)]
    notes = [note for note in table.notes_on_marks if note not in elsewhere]
    if published:
        columns += _paper_columns(result, published)
        runs = max(cell.runs for cell in published.values())
        notes.append(
            f"The column paper is what the paper reports for {result.dataset}, over "
            f"{runs} runs with its own settings and split."
        )
    highest = None if result.best is None else result.best.summary.mean
    largest = result.largest_class
    return {
        "result": result,
        "table": table,
        "marks": table.marks,
        "columns": columns,
        "score": named["score"].heading,
        "verdicts": ("verdict", AGAINST_BACKBONE, COULD_BE_BEST),
        "notes": notes,
        "badges": [
            (
                "best"
                if comparison.best_set == (row.method,)
                else f"{result.metric.best} mean"
            )
            if highest is not None and row.summary.mean == highest
            else ""
            for row in result.results
        ],
        "compared": bool(shown_comparisons(result)),
        "baseline": comparison.baseline,
        "largest_class": LARGEST_CLASS,
        "largest_score": result.metric.text(largest.mean if largest else None),
    }


def _paper_columns(
    result: DatasetResult, published: Mapping[str, PaperCell]
) -> list[Column]:
    """The paper's scores, and how far the result is from them."""
    theirs = [published.get(method) for method in result.methods]
    means = [None if cell is None else cell.mean for cell in theirs]
    scores = [
        "-" if cell is None else mean_and_std(cell.mean, cell.std) for cell in theirs
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


def as_html(table: Table) -> str:
    """An HTML table with its title as caption, the notes below it."""
    return rendered("html_report/table.html", table=table)


def notebook_html(result: DatasetResult, table: Table) -> str:
    """The answer and the table with every run, in the colours of the notebook.

    There are no scripts or style sheets in it.

    Args:
        result: The result of one dataset.
        table: Its table, with one row per method in the order of the result.
    """
    scores = [list(row.scores.values()) for row in result.results]
    every = [score for row in scores for score in row]
    text = result.metric.text
    low, high = (min(every), max(every)) if every else (0.0, 0.0)
    span = f", {text(low)} to {text(high)}" if every else ""
    return rendered(
        "html_report/notebook.html",
        answer=answer(result),
        claims=claims(result),
        table=table,
        marks=table.marks,
        columns=(*table.columns, f"every run{span}"),
        methods=result.methods,
        scores=scores,
        x=Scale(low, high, _LEFT, _RIGHT),
        text=text,
    )
