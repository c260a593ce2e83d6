"""Which process trains which group, where several share a store.

A lock is one byte of a file beside the store, held by the operating system for the
process: it is free again the moment the process ends, however it ends. Locks only
spare work; that no run is kept twice is the store's doing.
"""

import os
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from tempergat.base.errors import UserError

if sys.platform != "win32":
    import fcntl


class GroupLocks:
    """Locks on groups, by number.

    Args:
        store: The store's file.

    Raises:
        UserError: The file beside it cannot be written to.
    """

    def __init__(self, store: Path) -> None:
        path = store.with_name(f"{store.name}.lock")
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise UserError(
                f"cannot use {path}: {error.strerror}; make it writable or choose "
                "another folder with --out"
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._file)

    def take(self, group: int, *, wait: bool) -> bool:
        """Take a group's lock.

        Args:
            group: The group's number.
            wait: Whether to wait for another process to leave it.

        Returns:
            Whether it is ours now; where the system has no such locks it always is.
        """
        if sys.platform == "win32":
            return True
        try:
            fcntl.lockf(
                self._file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB), 1, group
            )
        except (BlockingIOError, PermissionError):
            return False
        except OSError:
            # Some network file systems have no locks.
            return True
        return True

    def leave(self, group: int) -> None:
        """Give a group's lock back."""
        if sys.platform != "win32":
            try:
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, group)
            except OSError:
                # None was given out either.
                return
