"""Locks that processes hold on files.

The operating system releases a lock when the process that holds it ends, however it
ends, so that no lock is left behind by a killed process.
"""

import errno
import os
import struct
import sys
from pathlib import Path
from typing import Self

from tempergat.base.errors import UserError
from tempergat.base.files import refuse_windows

# The layers are imported on Windows too, which has no such locks.
if sys.platform != "win32":
    import fcntl

# A link that somebody planted must not lead to a file of the user.
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
# Lock files in use by sweeps, where locks belong to the process.
_used_by_this_process: set[Path] = set()


class _LockFile:
    """An open file that locks are taken on, closed at the end of a `with` block."""

    def __init__(self, path: Path, remedy: str) -> None:
        refuse_windows()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | _NO_LINK, 0o644)
        except OSError as error:
            is_link = error.errno == errno.ELOOP
            reason = "it is a link" if is_link else error.strerror
            raise UserError(f"cannot write to {path} ({reason}); {remedy}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
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
        fcntl.flock(self._file, fcntl.LOCK_EX)
        return self


class GroupLocks(_LockFile):
    """Locks on the groups of runs in a store, so that no two processes train the same.

    A lock is one byte of a file beside the store. Locks only save work: that no run is
    stored twice is ensured by the store.

    On Linux a lock belongs to the opened file, so sweeps in threads of one process
    exclude each other as processes do. Elsewhere it belongs to the process; there a
    second sweep of the process on the same store is refused.

    Args:
        store: The store's file.

    Raises:
        UserError: The lock file beside the store cannot be written, or another sweep
            of this process uses it and the system does not tell the two apart.
    """

    def __init__(self, store: Path) -> None:
        path = store.with_name(f"{store.name}.lock")
        self._path = path.resolve()
        if not _locks_belong_to_files() and self._path in _used_by_this_process:
            raise UserError(
                f"another sweep of this process uses {store}; wait for it to end, or "
                "choose another folder with --out (out= in Python)"
            )
        super().__init__(
            path,
            "make it writable or choose another folder with --out (out= in Python)",
        )
        _used_by_this_process.add(self._path)

    def __exit__(self, *error: object) -> None:
        _used_by_this_process.discard(self._path)
        super().__exit__(*error)

    def acquire(self, group: int, *, wait: bool) -> bool:
        """Acquires the lock of a group.

        Args:
            group: The group's number.
            wait: Whether to wait for another process to release it.

        Returns:
            Whether this process now holds it; always True on a file system without
            locks.
        """
        try:
            if _locks_belong_to_files():
                command = fcntl.F_OFD_SETLKW if wait else fcntl.F_OFD_SETLK
                fcntl.fcntl(self._file, command, _byte(fcntl.F_WRLCK, group))
            else:
                flags = fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB
                fcntl.lockf(self._file, flags, 1, group)
        except (BlockingIOError, PermissionError):
            return False
        except OSError:
            # Some network file systems have no locks.
            return True
        return True

    def release(self, group: int) -> None:
        """Releases the lock of a group."""
        try:
            if _locks_belong_to_files():
                fcntl.fcntl(self._file, fcntl.F_OFD_SETLK, _byte(fcntl.F_UNLCK, group))
            else:
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, group)
        except OSError:
            # The file system has no locks, so none was acquired.
            return


def _locks_belong_to_files() -> bool:
    return sys.platform == "linux" and sys.maxsize > 2**32


def _byte(kind: int, number: int) -> bytes:
    """The C struct flock of one byte on 64-bit Linux."""
    return struct.pack("hhqqi4x", kind, os.SEEK_SET, number, 1, 0)
