"""Memory, disk and files: what cannot be had of them, said in words."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tempergat.base.errors import UserError

_CONTROL_GROUP = Path("/sys/fs/cgroup")


def available_bytes() -> int:
    """Memory this process may still take, the control group's limit included."""
    found = [_meminfo_available(), _control_group_left()]
    return min(value for value in found if value is not None)


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
        # Files the kernel keeps in memory count as used, and make room when asked.
        used -= int(counts["active_file"]) + int(counts["inactive_file"])
    except (OSError, ValueError, KeyError):
        return None
    return None if limit == "max" else max(0, int(limit) - max(0, used))


def require_memory(needed: int, what: str, remedy: str) -> None:
    """Refuses work whose result does not fit.

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
def telling_full_disk(folder: Path) -> Iterator[None]:
    """Turns a full disk under a folder into a mistake the user can mend.

    Raises:
        UserError: The disk, the quota or the largest allowed file is full.
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
def telling_unreadable(path: Path) -> Iterator[None]:
    """Turns a file the system does not give out into a mistake the user can mend.

    Raises:
        UserError: The file cannot be opened or read.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None or not is_of_system(error):
            raise
        raise UserError(
            f"{path} cannot be read ({os.strerror(error.errno)}); make it readable, or "
            "give another path"
        ) from error


def is_of_system(error: BaseException) -> bool:
    """Whether the system refused, rather than a reader gave up on a damaged file."""
    # Damage has a reader seek to a place before the beginning, which is invalid.
    given_up = (None, errno.EINVAL)
    return isinstance(error, OSError) and error.errno not in given_up
