"""What commands print as plain text."""

from pathlib import Path

import typer

from tempergat.base import is_standard_output, printable, write_into, write_text


def echo(text: str, *, err: bool = False) -> None:
    """Print text; control characters in it become visible.

    Names of columns, files and folders come from other people's files, and may hold
    characters that clear a terminal or change its title.
    """
    typer.echo(printable(text, keep="\n"), err=err)


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
