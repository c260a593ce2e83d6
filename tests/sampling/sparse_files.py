"""Files that are larger than memory and take no space."""

import math
from pathlib import Path

import numpy as np
import pytest


def write_sparse(path: Path, kind: str, shape: tuple[int, ...], last: int = 0) -> None:
    """Writes a ``.npy`` file of zeros, with one number at its end."""
    header = {"descr": kind, "fortran_order": False, "shape": shape}
    with open(path, "wb") as stream:
        np.lib.format.write_array_header_2_0(stream, header)
        try:
            stream.seek((math.prod(shape) - 1) * np.dtype(kind).itemsize, 1)
            stream.write(np.array([last], kind).tobytes())
        except OSError:
            pytest.skip("the file system has no files of this size")
