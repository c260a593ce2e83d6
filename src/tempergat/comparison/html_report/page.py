"""Pages from the templates that this package and the explorer have as assets."""

import html
import json
import re
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from tempergat import __version__
from tempergat.comparison.report.formats import (
    Table,
    as_latex,
    as_markdown,
    as_plain_csv,
)
from tempergat.nn import description_of

# With these, and not with a name, verdicts may begin.
_FIRST_WORDS = ("and", "but", "no", "nothing", "of", "on", "over", "the", "too")
_NUMBER = re.compile(r"[<+-]?\d[\d,]*(\.\d+)?")


def page_html(title: str, *parts: str) -> str:
    """A whole page around its body; it may load nothing from anywhere.

    Args:
        title: Heading of the page and title of its window.
        *parts: The body, as HTML; empty parts are left out.
    """
    body = "\n".join(filter(None, parts))
    return rendered("html_report/page.html", title=title, body=body) + "\n"


def rendered(template: str, **values: Any) -> str:
    """A template with values in it, such as `html_report/page.html`.

    An indented line of a template continues the line before it. All text is escaped
    unless the template calls it safe.
    """
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    def escaped(value: object) -> Markup:
        return value if isinstance(value, Markup) else Markup(html.escape(str(value)))

    environment = Environment(
        loader=FunctionLoader(lambda name: re.sub(r"\n +", "", _asset(name))),
        autoescape=True,
        finalize=escaped,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    environment.globals |= {"asset": _asset, "version": __version__}
    environment.filters |= {
        "copies": _copies,
        "description": description_of,
        "json_block": _json_block,
        "sentence": _as_sentence,
        "sort_key": _sort_key,
    }
    return environment


def _asset(name: str) -> Markup:
    """The text of a file like `html_report/report.css`."""
    package, _, file = name.partition("/")
    folder = resources.files(f"tempergat.comparison.{package}") / "assets"
    return Markup((folder / file).read_text(encoding="utf-8"))


def _copies(table: Table) -> dict[str, str]:
    """What the buttons below a table copy."""
    return {
        "LaTeX": as_latex(table),
        "Markdown": as_markdown(table),
        "CSV": as_plain_csv(table),
    }


def _json_block(value: object) -> Markup:
    """Values for the page's script; no text in them can end the block."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(f'<script type="application/json">{text}</script>')


def _as_sentence(words: str) -> str:
    """The words as a sentence; a name at their start is left as it is."""
    first, _, rest = words.partition(" ")
    if first in _FIRST_WORDS:
        words = f"{first.capitalize()} {rest}"
    return words if words.endswith(".") else words + "."


def _sort_key(words: str) -> str:
    """What a cell is sorted by: the number that it begins with, or its words."""
    number = _NUMBER.match(words)
    if number is not None:
        return number[0].strip("<").replace(",", "")
    return "" if words == "-" else words
