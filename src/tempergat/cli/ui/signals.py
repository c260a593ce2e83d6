"""Being told to stop: Ctrl-C, and SIGTERM in the same way."""

import signal
from types import FrameType

_SIGNALLED = 128


class Terminated(KeyboardInterrupt):
    """SIGTERM, to be met like Ctrl-C."""


def meet_sigterm_like_ctrl_c() -> None:
    """Raise `Terminated` where the process is told to end."""
    signal.signal(signal.SIGTERM, _raise)


def exit_status(stop: KeyboardInterrupt) -> int:
    """The status shells expect of a process stopped so."""
    number = signal.SIGTERM if isinstance(stop, Terminated) else signal.SIGINT
    return _SIGNALLED + number


def _raise(number: int, frame: FrameType | None) -> None:
    raise Terminated
