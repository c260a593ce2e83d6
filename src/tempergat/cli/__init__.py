"""The `tempergat` command: parse, call, print."""

import os
import sys

from tempergat.base import what_is_missing
from tempergat.cli.ui.signals import (
    INTERRUPTED,
    Terminated,
    raise_on_sigterm,
    stopped,
    was_terminated,
)

__all__ = ["main"]


def main() -> None:
    """Run the command; a mistake of the user or a stop ends in one line."""
    if sys.platform == "win32":
        # Writing files and locking them uses calls that Windows does not have.
        sys.exit(
            "tempergat: the commands run on Linux and macOS, not on Windows; use the "
            "Windows Subsystem for Linux (WSL)"
        )
    # Python has no stream where the shell closed it, as with `1>&-`.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    try:
        # Before the commands are imported, which takes a while.
        raise_on_sigterm()
        if what_is_missing("tempergat"):
            from tempergat.cli.core_only import run
        else:
            from tempergat.cli.application import run

        run()
    except KeyboardInterrupt as stop:
        sys.exit(stopped(stop))
    except SystemExit as ended:
        # Typer exits with 130 whatever the signal, and says nothing.
        if ended.code == INTERRUPTED and was_terminated():
            sys.exit(stopped(Terminated()))
        raise
    except Exception:
        # A module that the signal interrupts while it is imported may turn the
        # exception into another one.
        if not was_terminated():
            raise
        sys.exit(stopped(Terminated()))
