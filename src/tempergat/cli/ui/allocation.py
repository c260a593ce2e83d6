"""The C library's memory settings for a process that trains on the CPU."""

import ctypes
import platform

# Parameters of glibc's mallopt.
_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3

_NEVER = -1
# The largest value that glibc accepts.
_LARGEST_MMAP_THRESHOLD = 32 * 2**20


def keep_freed_memory() -> None:
    """Lets the process reuse freed blocks of up to 32 MiB, under glibc.

    Every epoch frees and allocates the same blocks. By default glibc returns them to
    the system, which must clear them again: a sixth of an epoch's time on a CPU. The
    setting is for the whole process, so only the command may choose it.
    """
    if platform.libc_ver()[0] != "glibc":
        return
    library = ctypes.CDLL(None)
    library.mallopt(_MMAP_THRESHOLD, _LARGEST_MMAP_THRESHOLD)
    library.mallopt(_TRIM_THRESHOLD, _NEVER)
