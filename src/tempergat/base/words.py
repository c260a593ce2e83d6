"""Counts, lists and times in words."""

from collections.abc import Collection, Sequence
from itertools import islice


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
