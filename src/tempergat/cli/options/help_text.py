"""How a command's help names its arguments, and the examples at its end."""

import re
from typing import Any

from typer.core import TyperCommand


class HelpCommand(TyperCommand):
    """A command whose help writes arguments as NAME, [NAME] or NAME..."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The words of the usage line, without the braces of required arguments."""
        pieces = super().collect_usage_pieces(ctx)
        return [re.sub(r"^\{(.*)\}", r"\1", piece) for piece in pieces]

    def get_help(self, ctx: Any) -> str:
        """The help page, without the Python types of lists."""
        return re.sub(r" <list\[.*?\]>", _dots, super().get_help(ctx))


def _dots(found: re.Match[str]) -> str:
    # As wide as before, so that the columns stay.
    return "...".ljust(len(found[0]))


def examples(*commands: str) -> str:
    """Examples as the last part of a help page.

    Args:
        *commands: What a user may type, one command each.
    """
    # Typer joins and wraps lines unless a paragraph starts with this character.
    return "\n".join(["\b", "Examples:", *(f"  {command}" for command in commands)])
