"""Freed memory kept for the next epoch instead of given back to the system."""

import ctypes
import platform
from collections.abc import Iterator
from contextlib import contextmanager

import torch

# Parameters of glibc's mallopt.
_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3

_NEVER = -1
# The largest value glibc takes, and where its own adaptation leaves both in a process
# that frees large blocks.
_LARGEST_MMAP = 32 * 2**20
_USUAL_TRIM = 64 * 2**20


@contextmanager
def memory_kept(device: torch.device) -> Iterator[None]:
    """Lets blocks of up to 32 MiB be used again, on CPUs under glibc.

    Every epoch frees and takes the same blocks. glibc would give them back and have
    the system clear them anew each time, which is a sixth of an epoch's time.
    """
    if device.type != "cpu" or platform.libc_ver()[0] != "glibc":
        yield
        return
    library = ctypes.CDLL(None)
    library.mallopt(_MMAP_THRESHOLD, _LARGEST_MMAP)
    library.mallopt(_TRIM_THRESHOLD, _NEVER)
    try:
        yield
    finally:
        library.mallopt(_TRIM_THRESHOLD, _USUAL_TRIM)
        library.malloc_trim(0)
