"""Locks that processes hold on files.

The operating system releases a lock when the process that holds it ends, however it
ends, so that no lock is left behind by a killed process.
"""

import os
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from tempergat.base.errors import UserError

if sys.platform != "win32":
    import fcntl


class _LockFile:
    """An open file that locks are taken on, closed at the end of a `with` block."""

    def __init__(self, path: Path, remedy: str) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise UserError(
                f"cannot write to {path} ({error.strerror}); {remedy}"
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


class FileLock(_LockFile):
    """A lock that one process holds inside a `with` block while the others wait.

    Args:
        path: The lock file, which is created where it is missing and never deleted.
        remedy: What a user should do where the file cannot be written.

    Raises:
        UserError: The file cannot be written.
    """

    def __enter__(self) -> Self:
        if sys.platform != "win32":
            fcntl.flock(self._file, fcntl.LOCK_EX)
        return self


class GroupLocks(_LockFile):
    """Locks on the groups of runs in a store, so that no two processes train the same.

    A lock is one byte of a file beside the store. Locks only save work: that no run is
    stored twice is ensured by the store. They do not hold between threads.

    Args:
        store: The store's file.

    Raises:
        UserError: The lock file beside the store cannot be written.
    """

    def __init__(self, store: Path) -> None:
        path = store.with_name(f"{store.name}.lock")
        super().__init__(path, "make it writable or choose another folder with --out")

    def acquire(self, group: int, *, wait: bool) -> bool:
        """Acquires the lock of a group.

        Args:
            group: The group's number.
            wait: Whether to wait for another process to release it.

        Returns:
            Whether this process now holds it; always True where the system has no such
            locks.
        """
        if sys.platform == "win32":
            return True
        flags = fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB
        try:
            fcntl.lockf(self._file, flags, 1, group)
        except (BlockingIOError, PermissionError):
            return False
        except OSError:
            # Some network file systems have no locks.
            return True
        return True

    def release(self, group: int) -> None:
        """Releases the lock of a group."""
        if sys.platform != "win32":
            try:
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, group)
            except OSError:
                # The file system has no locks, so none was acquired.
                return
