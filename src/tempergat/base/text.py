"""Text for people: safe to print, counts and lists in words, suggestions.

Text from files and file names is made safe: a control character in a column header
could clear the screen or set the title of the window, and a bidirectional override
could make a line read as another one.
"""

import difflib
import reprlib
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
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
        letter.encode("unicode_escape").decode("ascii")
        if _is_unsafe(letter) and letter not in keep
        else letter
        for letter in text
    )


def one_line(text: str, longest: int = LONGEST_MESSAGE) -> str:
    """A message as one line that is safe to print, its middle cut where it is long.

    The end is kept, because messages end with the remedy.
    """
    line = printable(text)
    if len(line) <= longest:
        return line
    kept = longest - len(" ... ")
    return f"{line[: kept - kept // 2]} ... {line[-(kept // 2) :]}"


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


def counted(number: int, word: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def listed(words: Collection[str], most: int = 5) -> str:
    """`a, b, c`; a long list is cut, like `a, b and 7 more`."""
    shown = ", ".join(islice(words, most))
    rest = len(words) - most
    return shown if rest <= 0 else f"{shown} and {rest} more"


def joined(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def duration(seconds: float) -> str:
    """A time in words: `45 s`, `3 min 20 s`, `2 h 5 min`, `6 days`, `3 years`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    if whole < 100 * 3600:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    days = whole // 86400
    return f"{days:,} days" if days < 1000 else f"{days // 365:,} years"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`did you mean gat or gatv2? `, or an empty string if no known name is close.

    Args:
        word: What the user wrote; upper and lower case are not distinguished.
        known: The names there are, in lower case.
    """
    close = difflib.get_close_matches(word.lower(), list(known), n=3, cutoff=0.6)
    return f"did you mean {' or '.join(close)}? " if close else ""


def suggest_one_of(word: str, known: Collection[str]) -> str:
    """`did you mean gat?`, or `choose one of gat, gcn` if no known name is close."""
    hint = did_you_mean(word, known).strip()
    return hint or f"choose one of {', '.join(sorted(known))}"
