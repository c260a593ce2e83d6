"""The `tempergat` command: parse, call, print."""

import sys

from tempergat.cli.ui.stopping import raise_on_sigterm, stopped

__all__ = ["main"]


def main() -> None:
    """Run the command; a mistake of the user or a stop ends in one line."""
    try:
        # Before the commands are imported, which takes a while.
        raise_on_sigterm()
        from tempergat.cli.application import run

        run()
    except KeyboardInterrupt as stop:
        sys.exit(stopped(stop))
