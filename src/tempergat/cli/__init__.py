"""The `tempergat` command: parse, call, print."""

import sys

from tempergat.cli.ui.stopping import raise_on_sigterm, stopped

__all__ = ["main"]


def main() -> None:
    """Run the command; every ending that a user can cause is one line."""
    try:
        # First of all: importing the commands takes a while.
        raise_on_sigterm()
        from tempergat.cli.application import run

        run()
    except KeyboardInterrupt as stop:
        sys.exit(stopped(stop))
