"""Memory, disk and files: what cannot be had of them, said in words."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tempergat.errors import UserError


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
    group = Path("/sys/fs/cgroup")
    try:
        limit = (group / "memory.max").read_text().strip()
        used = int((group / "memory.current").read_text())
    except (OSError, ValueError):
        return None
    return None if limit == "max" else max(0, int(limit) - used)


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
        # A damaged file has its reader seek to a place before the beginning.
        if error.errno in (None, errno.EINVAL):
            raise
        raise UserError(
            f"{path} cannot be read ({os.strerror(error.errno)}); make it readable, or "
            "give another path"
        ) from error
