"""Tables, figures and Markdown of results."""

from typing import TYPE_CHECKING

from tempergat.base import lazy_names

if TYPE_CHECKING:
    from tempergat.study.report.best import best_in_words, denial, named
    from tempergat.study.report.figures import ranks_figure, result_figure
    from tempergat.study.report.files import write_figure, write_result
    from tempergat.study.report.formats import (
        Table,
        aligned,
        as_html,
        as_latex,
        as_markdown,
        as_text,
        markdown_rows,
    )
    from tempergat.study.report.markdown import filled
    from tempergat.study.report.notebook import notebook_html
    from tempergat.study.report.one_class import (
        ONE_CLASS_MARK,
        notes_on_one_class,
        one_class_clause,
    )
    from tempergat.study.report.records import as_csv, as_json, as_rows
    from tempergat.study.report.tables import (
        AGAINST_BACKBONE,
        AGAINST_HIGHEST,
        against_highest,
        has_both_questions,
        interval_text,
        notes_on_largest_class,
        notes_on_methods,
        result_table,
        shown_comparisons,
        shown_interval,
        verdict_word,
    )
    from tempergat.study.report.words import (
        mean_and_std,
        p_value,
        percent,
        signed,
    )

__all__ = [
    "AGAINST_BACKBONE",
    "AGAINST_HIGHEST",
    "ONE_CLASS_MARK",
    "Table",
    "against_highest",
    "aligned",
    "as_csv",
    "as_html",
    "as_json",
    "as_latex",
    "as_markdown",
    "as_rows",
    "as_text",
    "best_in_words",
    "denial",
    "filled",
    "has_both_questions",
    "interval_text",
    "markdown_rows",
    "mean_and_std",
    "named",
    "notebook_html",
    "notes_on_largest_class",
    "notes_on_methods",
    "notes_on_one_class",
    "one_class_clause",
    "p_value",
    "percent",
    "ranks_figure",
    "result_figure",
    "result_table",
    "shown_comparisons",
    "shown_interval",
    "signed",
    "verdict_word",
    "write_figure",
    "write_result",
]

__getattr__, __dir__ = lazy_names(__name__)
