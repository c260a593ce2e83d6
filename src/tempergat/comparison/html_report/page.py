"""A page around its body, and its pieces: figures, choices, copy buttons."""

import html
import json
import re
from collections.abc import Callable, Iterable, Mapping
from importlib import resources
from string import Template

from tempergat import __version__
from tempergat.comparison.html_report import svg

# With these, and not with a name, verdicts may begin.
_FIRST_WORDS = ("no", "nothing", "of", "on", "over", "the", "too")


def page_html(title: str, body: str) -> str:
    """A whole page around its body; it may load nothing from anywhere.

    Args:
        title: Heading of the page and title of its window.
        body: HTML.
    """
    page = filled(
        "html_report",
        "page.html",
        title=html.escape(title),
        style=asset("html_report", "report.css"),
        body=body,
        version=html.escape(__version__),
        script=asset("html_report", "report.js"),
    )
    return f"{page}\n"


def asset(package: str, name: str) -> str:
    """The text of a style sheet or script of a package of `tempergat.comparison`."""
    folder = resources.files(f"tempergat.comparison.{package}") / "assets"
    return (folder / name).read_text(encoding="utf-8")


def filled(package: str, name: str, **values: str) -> str:
    """An HTML file of a package, with values in the places of `$name`.

    An indented line of the file continues the line before it.
    """
    text = re.sub(r"\n +", "", asset(package, name).removesuffix("\n"))
    return Template(text).substitute(values)


def scrolled(content: str, name: str) -> str:
    """Content that may be wider than the page; the keyboard can scroll it."""
    return (
        f'<div class="scroll" tabindex="0" role="group" '
        f'aria-label="{html.escape(name)}">{content}</div>'
    )


def sort_heading(
    number: int, words: str, explained: str = "", attributes: str = ""
) -> str:
    """The heading of a column, with a button that sorts by it.

    Args:
        number: The column, from 0.
        words: Its name.
        explained: What it means, shown while the pointer is over it.
        attributes: Further attributes of the heading, as HTML.
    """
    about = f' title="{html.escape(explained)}"' if explained else ""
    return (
        f'<th scope="col" aria-sort="none"{attributes}>'
        f'<button type="button" data-sort="{number}"{about}>{html.escape(words)}'
        "</button></th>"
    )


def limits(words: Iterable[str]) -> str:
    """What an answer does not cover, as a list of sentences."""
    items = "".join(f"<li>{html.escape(word)}</li>" for word in words)
    return f'<div class="limits"><p>What this does not cover:</p><ul>{items}</ul></div>'


def figure(title: str, content: str, caption: str) -> str:
    """A figure with its title, caption and buttons that save it."""
    name = html.escape(title)
    buttons = " ".join(
        f'<button type="button" data-save="{kind.lower()}" '
        f'aria-label="Save {name} as {kind}">Save {kind}</button>'
        for kind in ("SVG", "PNG")
    )
    return (
        f'<figure class="figure" data-name="{name}"><h3>{name}</h3>'
        f"{scrolled(content, title)}<figcaption>{html.escape(caption)}</figcaption>"
        f'<p class="buttons">{buttons}</p></figure>'
    )


def for_both_widths(draw: Callable[[float], str | None]) -> str:
    """A drawing for large pages and one for phones; empty where there is none.

    Args:
        draw: Draws it at a width.
    """
    wide, narrow = draw(svg.WIDE), draw(svg.NARROW)
    if not wide:
        return ""
    return f'<div class="wide">{wide}</div><div class="narrow">{narrow}</div>'


def facts_list(facts: Mapping[str, str]) -> str:
    """Names and what they stand for; empty ones are left out."""
    shown = "".join(
        f"<dt>{html.escape(name)}</dt><dd><code>{html.escape(value)}</code></dd>"
        for name, value in facts.items()
        if value
    )
    return f'<dl class="facts">{shown}</dl>'


def choice(name: str, drawn: Mapping[str, str], first: str | None = None) -> str:
    """Several drawings of which one is shown, chosen from a list; empty without any.

    Args:
        name: What is chosen.
        drawn: The drawings by name; empty ones are left out.
        first: Which is shown first; the first of them when left out.
    """
    drawn = {key: drawing for key, drawing in drawn.items() if drawing}
    if not drawn:
        return ""
    first = first or next(iter(drawn))
    options = "".join(
        f'<option value="{number}"{" selected" if key == first else ""}>'
        f"{html.escape(key)}</option>"
        for number, key in enumerate(drawn)
    )
    panels = "".join(
        f'<div data-option="{number}"{"" if key == first else " hidden"}>{svg}</div>'
        for number, (key, svg) in enumerate(drawn.items())
    )
    return (
        f'<div class="choice"><label>{html.escape(name)} <select>{options}</select>'
        f"</label>{panels}</div>"
    )


def copy_buttons(what: str, texts: Mapping[str, str]) -> str:
    """Buttons that copy the same thing in several formats."""
    buttons = " ".join(
        f'<button type="button" data-copy="{html.escape(name)}" '
        f'aria-label="Copy the {html.escape(what)} as {html.escape(name)}">'
        f"Copy {html.escape(name)}</button>"
        for name in texts
    )
    return (
        f'<p class="buttons copies">{buttons}{json_block(dict(texts))}'
        '<span class="said" role="status"></span></p>'
    )


def json_block(value: object) -> str:
    """Values for the page's script; no text in them can end the block."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return f'<script type="application/json">{text}</script>'


def as_sentence(words: str) -> str:
    """The words as a sentence; a name at their start is left as it is."""
    first, _, rest = words.partition(" ")
    if first in _FIRST_WORDS:
        words = f"{first.capitalize()} {rest}"
    return words if words.endswith(".") else words + "."
