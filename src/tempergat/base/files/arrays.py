"""Arrays written to files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    import numpy as np


def write_array(path: Path, array: np.ndarray) -> None:
    """Writes an array as a new ``.npy`` file, through to the disk.

    Raises:
        OSError: The file cannot be written. Its number says why; that of `numpy.save`
            has no number when the disk is full.
    """
    # Imported here: commands that answer at once do not wait for it.
    from numpy import ascontiguousarray
    from numpy.lib import format as npy

    with open(path, "xb") as stream:
        npy.write_array(_Plain(stream), ascontiguousarray(array), allow_pickle=False)
        stream.flush()
        os.fsync(stream.fileno())


class _Plain:
    """A stream that numpy writes to as to any other, and not by its descriptor."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, content: bytes) -> int:
        return self._stream.write(content)
