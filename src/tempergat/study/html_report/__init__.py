"""The report of comparisons as one self-contained HTML file."""

from typing import TYPE_CHECKING

from tempergat.base import lazy_names

if TYPE_CHECKING:
    from tempergat.study.html_report.document import report_html, write_report
    from tempergat.study.html_report.overview import Overview
    from tempergat.study.html_report.section import Published, Section

__all__ = ["Overview", "Published", "Section", "report_html", "write_report"]

__getattr__, __dir__ = lazy_names(__name__)
