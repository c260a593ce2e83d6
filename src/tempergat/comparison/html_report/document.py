"""The report: one HTML file that needs nothing else."""

import html
from collections.abc import Sequence
from importlib import resources

from tempergat import __version__
from tempergat.base import UserError
from tempergat.comparison.html_report.overview import Overview, overview_html
from tempergat.comparison.html_report.section import Section, section_html

# Nothing may be loaded from anywhere; what the page shows is inside it.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "img-src data: blob:"
)


def report_html(
    sections: Sequence[Section], overview: Overview | None = None, after: str = ""
) -> str:
    """The page as text.

    Args:
        sections: One for each graph.
        overview: What comes before them; None for one graph.
        after: HTML that comes behind them, like the explorer of a model.

    Raises:
        UserError: There is nothing to report.
    """
    if not sections:
        raise UserError("there are no runs to report; compare methods first")
    names = [section.shown_name for section in sections]
    title = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if names[3:] else "")
    # Numbered, because different names can give the same id.
    by_anchor = {f"graph-{n}": section for n, section in enumerate(sections, start=1)}
    body = [
        section_html(one, anchor, named=overview is not None)
        for anchor, one in by_anchor.items()
    ]
    if overview is not None:
        body.insert(0, overview_html(overview, by_anchor))
    if after:
        body.append(after)
    return page_html(f"Graph attention on {title}", "\n".join(body))


def page_html(title: str, body: str) -> str:
    """A whole page around its body.

    Args:
        title: Heading of the page and title of its window.
        body: HTML.
    """
    style, script = _asset("report.css"), _asset("report.js")
    name = html.escape(title)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>{name}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f'<header><h1>{name}</h1><button type="button" id="theme" '
        'aria-label="Change between light and dark">◐</button></header>\n'
        f"<main>\n{body}\n</main>\n"
        f"<footer><p>Made by tempergat {html.escape(__version__)}. This file needs no "
        "network.</p></footer>\n"
        f"<script>\n{script}</script>\n</body>\n</html>\n"
    )


def _asset(name: str) -> str:
    folder = resources.files("tempergat.comparison.html_report") / "assets"
    return (folder / name).read_text(encoding="utf-8")
