"""The exception for mistakes of the user."""

from tempergat.base.shown_text import one_line


class UserError(Exception):
    """A mistake the user can correct: wrong input, a missing file, a full disk.

    The message is one line with what was wrong, the value seen and the remedy. The
    command line prints it without a traceback and exits with status 2. Characters that
    would control a terminal are escaped, and a long message is cut in its middle.
    """

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


def first_line(error: BaseException) -> str:
    """The first line of an error's message, at most 200 characters of it."""
    lines = str(error).splitlines()
    return lines[0][:200] if lines else type(error).__name__
