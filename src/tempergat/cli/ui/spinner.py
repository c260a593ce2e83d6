"""A spinner on the terminal while a command imports what it needs."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def spinner(words: str, *, quiet: bool) -> Iterator[None]:
    """Show words and a spinner on a terminal, nothing elsewhere.

    Imports nothing slow itself.
    """
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(words):
        yield
