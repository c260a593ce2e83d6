"""Tables and numbers on the pages of docs/, made from results.

A page is written by a person. A table stands between two lines,

    <!-- NAME ARGUMENTS -->
    <!-- end -->

and a number inside a sentence as `<!--NAME ARGUMENTS-->12<!--/-->`. Both are replaced
by what a function called NAME returns for the arguments, which are words.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from tempergat.base import UserError

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
_TABLE = re.compile(
    r"^<!-- (?P<slot>[^\n]+?) -->\n(?P<old>.*?)^<!-- end -->$", re.MULTILINE | re.DOTALL
)
_NUMBER = re.compile(r"<!--(?P<slot>[^\s/][^\n]*?)-->(?P<old>[^\n]*?)<!--/-->")

Makers = Mapping[str, Callable[..., str]]


def fill(text: str, tables: Makers, numbers: Makers) -> str:
    """The text of a page with every table and number made again.

    Args:
        text: The page.
        tables: Functions that return a table in Markdown, by name.
        numbers: Functions that return a number as it stands in a sentence, by name.

    Raises:
        UserError: The page asks for something that no function makes.
    """

    def table(slot: re.Match[str]) -> str:
        made = _make(slot["slot"], tables, "table")
        return f"<!-- {slot['slot']} -->\n{made}\n<!-- end -->"

    def number(slot: re.Match[str]) -> str:
        made = _make(slot["slot"], numbers, "number")
        return f"<!--{slot['slot']}-->{made}<!--/-->"

    return _NUMBER.sub(number, _TABLE.sub(table, text))


def slots(text: str) -> list[str]:
    """The name of every table and number of a page, without arguments."""
    found = [*_TABLE.finditer(text), *_NUMBER.finditer(text)]
    return [slot["slot"].split()[0] for slot in found]


def markdown_table(head: list[str], rows: list[list[str]], words: int = 1) -> str:
    """A table whose first columns hold words and whose others hold numbers.

    Args:
        head: The headings.
        rows: The cells, one for each heading.
        words: How many columns are aligned to the left.
    """
    rule = ["---"] * words + ["---:"] * (len(head) - words)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *rows))


def signed(value: float, digits: int = 1) -> str:
    """A difference with its sign; one that rounds to zero has none."""
    text = f"{value:+.{digits}f}"
    return text if float(text) else f"{0:.{digits}f}"


def p_value(p: float) -> str:
    """A p-value with three digits."""
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def _make(slot: str, makers: Makers, kind: str) -> str:
    name, *arguments = slot.split()
    if name not in makers:
        raise UserError(
            f"the page has a {kind} {name!r}, and nothing makes it; "
            f"there are {', '.join(sorted(makers)) or 'none'}"
        )
    return makers[name](*arguments)
