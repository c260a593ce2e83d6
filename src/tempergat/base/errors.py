"""Errors a user can cause, told apart from bugs."""


class UserError(Exception):
    """A mistake of the user's: one line that names what was seen and the remedy.

    The command prints the message without a traceback and exits with status 2.
    """
