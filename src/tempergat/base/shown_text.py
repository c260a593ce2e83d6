"""Text from files and file names, made safe to print.

A control character in a column header could clear the screen or set the title of the
window, and a bidirectional override could make a line read as another one.
"""

import reprlib
import unicodedata
from typing import Any

# Letters of one value in a message.
LONGEST_VALUE = 80
# Letters of a whole message. Most are below 300.
LONGEST_MESSAGE = 600
# Control, format (which holds the bidirectional overrides) and surrogate characters,
# line and paragraph separators.
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
# Format characters that ordinary words of some languages contain.
_JOINERS = "\u200c\u200d"


def printable(text: str, *, keep: str = "") -> str:
    r"""Replaces characters that would control a terminal by escapes like `\x1b`.

    Args:
        text: Any text.
        keep: Control characters that stay, like `"\n"`.
    """
    if text.isprintable():
        return text
    return "".join(
        _escaped(letter) if _is_unsafe(letter) and letter not in keep else letter
        for letter in text
    )


def one_line(text: str, longest: int = LONGEST_MESSAGE) -> str:
    """A message as one line that is safe to print, its middle cut where it is long.

    The end is kept, because messages end with the remedy.
    """
    line = printable(text)
    return line if len(line) <= longest else _without_middle(line, longest)


def shown(value: Any) -> str:
    """A value as `repr` writes it, cut where it is long or deeply nested."""
    # Each level of nesting may hold a few values, so the depth must be small.
    short = reprlib.Repr()
    short.maxlevel = 2
    short.maxstring = short.maxother = short.maxlong = LONGEST_VALUE
    return one_line(short.repr(value), LONGEST_VALUE)


def _is_unsafe(letter: str) -> bool:
    if letter in _JOINERS:
        return False
    # Code points ending in FFFE and FFFF are no characters; XML cannot hold them.
    is_none = ord(letter) & 0xFFFE == 0xFFFE
    return is_none or unicodedata.category(letter) in _UNSAFE


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")


def _without_middle(text: str, longest: int) -> str:
    kept = longest - len(" ... ")
    return f"{text[: kept - kept // 2]} ... {text[-(kept // 2) :]}"
