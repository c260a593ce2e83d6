"""The report of comparisons as one self-contained HTML file."""

from typing import TYPE_CHECKING

from tempergat.base import lazy_names

if TYPE_CHECKING:
    from tempergat.study.html_report.charts.panels import (
        DASHES,
        Across,
        Line,
        Panel,
        panels_chart,
    )
    from tempergat.study.html_report.document import page_html, report_html
    from tempergat.study.html_report.overview import Overview
    from tempergat.study.html_report.parts import (
        as_sentence,
        facts_list,
        json_block,
        limits,
    )
    from tempergat.study.html_report.section import Published, Section
    from tempergat.study.html_report.svg import (
        drawing,
        element,
        line,
        shortened,
        text,
        title,
    )

__all__ = [
    "DASHES",
    "Across",
    "Line",
    "Overview",
    "Panel",
    "Published",
    "Section",
    "as_sentence",
    "drawing",
    "element",
    "facts_list",
    "json_block",
    "limits",
    "line",
    "page_html",
    "panels_chart",
    "report_html",
    "shortened",
    "text",
    "title",
]

__getattr__, __dir__ = lazy_names(__name__)
