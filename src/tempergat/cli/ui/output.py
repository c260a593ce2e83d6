"""What commands print as text and JSON, and a spinner while they import."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tempergat.base import is_standard_output, printable, write_into, write_text


def echo(text: str, *, err: bool = False) -> None:
    """Print text; control characters in it become visible.

    Names of columns, files and folders come from other people's files, and may hold
    characters that clear a terminal or change its title.
    """
    stream = sys.stderr if err else sys.stdout
    print(printable(text, keep="\n"), file=stream, flush=True)


def write_output(content: str, out: Path | None, usual: Path) -> None:
    """Write a file where the user said, or else to the usual path.

    Args:
        content: The content.
        out: The path that the user gave; None where there was none.
        usual: The path to use then.
    """
    if out is None:
        write_into(usual.parent, usual.name, content)
    else:
        write_text(out, content)


def echo_beside(text: str, out: Path) -> None:
    """Print text, but not on the standard output that a file was written to."""
    echo(text, err=is_standard_output(out))


def print_json(value: Any) -> None:
    """Print plain values as JSON.

    Raises:
        ValueError: A number is not finite.
    """
    echo(json.dumps(value, indent=1, allow_nan=False))


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
