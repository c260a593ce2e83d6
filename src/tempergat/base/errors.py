"""The exception for mistakes of the user."""


class UserError(Exception):
    """A mistake the user can correct: wrong input, a missing file, a full disk.

    The message is one line with what was wrong, the value seen and the remedy. The
    command line prints it without a traceback and exits with status 2.
    """
