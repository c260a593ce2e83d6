"""Something that moves on the terminal while a command gets ready."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def waiting(words: str, *, quiet: bool) -> Iterator[None]:
    """Show words and a spinner on a terminal, nothing elsewhere.

    Imports nothing heavy: it is there while heavy things are imported.
    """
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(words):
        yield
