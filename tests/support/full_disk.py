"""A disk that is full, for files above a size."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def full_above(size: int) -> Iterator[None]:
    """Fails every write beyond so many bytes of a file, just as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
