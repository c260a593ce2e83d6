"""How a command ends when it is stopped by Ctrl-C or SIGTERM."""

import os
import shlex
import shutil
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, MappingProxyType

# Shells report a process that died of signal n as 128 + n.
_SIGNAL_BASE = 128
INTERRUPTED = _SIGNAL_BASE + signal.SIGINT

_terminated = False


class Terminated(KeyboardInterrupt):
    """SIGTERM, raised so that commands handle it as they handle Ctrl-C."""


def raise_on_sigterm() -> None:
    """Raise `Terminated` in the main thread when the process receives SIGTERM."""
    global _terminated
    _terminated = False
    signal.signal(signal.SIGTERM, _raise)


def was_terminated() -> bool:
    """Whether SIGTERM was received since `raise_on_sigterm`."""
    return _terminated


def exit_status(stop: KeyboardInterrupt) -> int:
    """130 after Ctrl-C, 143 after SIGTERM, as shells expect."""
    number = signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT
    return _SIGNAL_BASE + number


@contextmanager
def stoppable(kept: str | None = "finished runs are kept") -> Iterator[None]:
    """Turn Ctrl-C and SIGTERM into a message that says how to continue.

    Args:
        kept: What a stopped command does not lose; None where it has said so itself.
    """
    import typer

    from tempergat.cli.ui.output import echo

    try:
        yield
    except KeyboardInterrupt as stop:
        # Where torchrun stops this process, another one may have said why.
        if kept is not None and not getattr(stop, "is_said", False):
            how = f":\n  {resume_command()}"
            if "TORCHELASTIC_RUN_ID" in os.environ:
                how = ", run the same torchrun command"
            echo(f"Stopped; {kept}. To continue{how}", err=True)
        raise typer.Exit(exit_status(stop)) from stop


def stopped(stop: KeyboardInterrupt) -> int:
    """Report a stop of a command that stores nothing; return the exit status."""
    print("tempergat: stopped", file=sys.stderr)
    return exit_status(stop)


def resume_command(changed: Mapping[str, str] = MappingProxyType({})) -> str:
    """The command this process was started with, to paste into a shell.

    Args:
        changed: Values of options in place of those given.
    """
    program = Path(sys.argv[0])
    if program.name == "__main__.py":
        start = [_as_typed(Path(sys.executable)), "-m", "tempergat"]
    else:
        start = [_as_typed(program)]
    given = sys.argv[1:]
    for name, value in changed.items():
        given = [one for one in given if not one.startswith(f"{name}=")]
        at = given.index(name) if name in given else len(given)
        given[at : at + 2] = [name, value]
    return shlex.join([*start, *given])


def _as_typed(program: Path) -> str:
    """The name alone where the shell would find the same program by it."""
    on_path = shutil.which(program.name)
    is_same = on_path is not None and Path(on_path).absolute() == program.absolute()
    return program.name if is_same else str(program)


def _raise(number: int, frame: FrameType | None) -> None:
    global _terminated
    _terminated = True
    raise Terminated
