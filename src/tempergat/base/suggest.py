"""Suggestions for misspelt names."""

import difflib
from collections.abc import Collection, Iterable


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
