"""What commands print as plain text."""

import typer

from tempergat.base import printable


def echo(text: str, *, err: bool = False) -> None:
    """Print text; control characters in it become visible.

    Names of columns, files and folders come from other people's files, and may hold
    characters that clear a terminal or change its title.
    """
    typer.echo(printable(text, keep="\n"), err=err)
