"""The exception for mistakes of the user; memory, disks and files in words."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tempergat.base.text import one_line

_CONTROL_GROUP = Path("/sys/fs/cgroup")
# What torch's messages say. The last one comes from sizes that overflow 64 bits.
_OUT_OF_MEMORY_WORDS = (
    "can't allocate memory",
    "std::bad_alloc",
    "calculation overflowed",
)


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


def available_bytes() -> int:
    """Memory that this process may still allocate, within its control group's limit."""
    limits = [_meminfo_available(), _control_group_left()]
    return min(limit for limit in limits if limit is not None)


def _meminfo_available() -> int:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _control_group_left() -> int | None:
    try:
        limit = (_CONTROL_GROUP / "memory.max").read_text().strip()
        used = int((_CONTROL_GROUP / "memory.current").read_text())
        lines = (_CONTROL_GROUP / "memory.stat").read_text().splitlines()
        counts = dict(line.split() for line in lines)
        # The kernel's file cache counts as used, but is freed when memory is needed.
        used -= int(counts["active_file"]) + int(counts["inactive_file"])
    except (OSError, ValueError, KeyError):
        return None
    return None if limit == "max" else max(0, int(limit) - max(0, used))


def require_memory(needed: int, what: str, remedy: str) -> None:
    """Refuses work whose result does not fit in memory.

    Args:
        needed: Bytes the result takes.
        what: What needs them, for the error.
        remedy: What the user should do.

    Raises:
        UserError: Less than `needed` bytes are available.
    """
    available = available_bytes()
    if needed > available:
        raise UserError(
            f"{what} needs {needed / 2**30:.1f} GiB of memory, but "
            f"{available / 2**30:.1f} GiB are available; {remedy}"
        )


@contextmanager
def explain_full_disk(folder: Path) -> Iterator[None]:
    """Turns a full disk under a folder into an error that says what to do.

    Raises:
        UserError: The disk is full, or the quota or the size limit of files is reached.
    """
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise UserError(
                f"the disk under {folder} is full; free some space or move the data "
                "root with TEMPERGAT_DATA"
            ) from error
        raise


@contextmanager
def explain_unreadable(path: Path) -> Iterator[None]:
    """Turns the system's refusal to open or read a file into an error for the user.

    Raises:
        UserError: The file cannot be opened or read.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None or not is_system_error(error):
            raise
        raise UserError(
            f"{path} cannot be read ({os.strerror(error.errno)}); make it readable, or "
            "give another path"
        ) from error


def is_system_error(error: BaseException) -> bool:
    """Whether the operating system refused, rather than a reader of a damaged file."""
    # A damaged file makes readers seek before its beginning, which is EINVAL.
    by_readers = (None, errno.EINVAL)
    return isinstance(error, OSError) and error.errno not in by_readers


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether an error, or the one it was raised from, means that memory ran out."""
    # An error while a CUDA graph is captured causes a second one.
    while error is not None:
        # torch's class is recognised by its name, because torch may not be imported.
        if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
            return True
        if any(words in str(error) for words in _OUT_OF_MEMORY_WORDS):
            return True
        error = error.__context__
    return False
