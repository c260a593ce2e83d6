"""The report of comparisons as one self-contained HTML file."""

from typing import TYPE_CHECKING

from tempergat.base import lazy_names

if TYPE_CHECKING:
    from tempergat.study.html_report.document import (
        page_html,
        report_html,
        write_report,
    )
    from tempergat.study.html_report.overview import Overview
    from tempergat.study.html_report.parts import json_block
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
    "Overview",
    "Published",
    "Section",
    "drawing",
    "element",
    "json_block",
    "line",
    "page_html",
    "report_html",
    "shortened",
    "text",
    "title",
    "write_report",
]

__getattr__, __dir__ = lazy_names(__name__)
