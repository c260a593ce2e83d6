"""Gzipped tables of numbers, read in blocks."""

import gzip
import warnings
import zlib
from pathlib import Path

import numpy as np

from tempergat.data.formats.damaged import DamagedFile

_BLOCK = 1 << 24
_TO_SPACES = bytes.maketrans(b",\t\n\r", b"    ")


def read_numbers(
    path: Path, columns: int, dtype: type[np.generic], rows: int | None = None
) -> np.ndarray:
    """Reads a gzipped table of numbers without a header.

    Args:
        path: A file of comma- or tab-separated values.
        columns: Number of values in a row.
        dtype: Type of the result.
        rows: Number of rows, where it is known; any other number is an error.

    Returns:
        An array of shape (rows, columns).

    Raises:
        UserError: The file is damaged or holds anything but such rows.
    """
    blocks = []
    found = 0
    rest = b""
    try:
        with gzip.open(path) as stream:
            while data := stream.read(_BLOCK):
                head, newline, tail = (rest + data).rpartition(b"\n")
                rest = tail
                if newline:
                    blocks.append(_parse(path, head, columns, dtype, found))
                    found += len(blocks[-1])
        if rest.strip():
            blocks.append(_parse(path, rest, columns, dtype, found))
            found += len(blocks[-1])
    except (OSError, EOFError, zlib.error) as error:
        raise DamagedFile(path, f"is a damaged gzip file ({error})") from error
    if rows is not None and found != rows:
        raise DamagedFile(path, f"has {found} rows, but the graph has {rows}")
    result = np.empty((found, columns), dtype=dtype)
    start = 0
    # Each block is freed once it is copied, so that memory never holds all twice.
    blocks.reverse()
    while blocks:
        block = blocks.pop()
        result[start : start + len(block)] = block
        start += len(block)
    return result


def _parse(
    path: Path, text: bytes, columns: int, dtype: type[np.generic], first: int
) -> np.ndarray:
    with warnings.catch_warnings():
        # numpy only warns about text that it cannot read.
        warnings.simplefilter("error", DeprecationWarning)
        try:
            values = np.fromstring(text.translate(_TO_SPACES), dtype=dtype, sep=" ")
        except (DeprecationWarning, ValueError):
            values = np.empty(0, dtype=dtype)
    lines = text.count(b"\n") + 1
    if len(values) != lines * columns:
        row = first + _first_bad_line(text, columns, dtype)
        raise DamagedFile(f"{path}, row {row + 1}", f"does not hold {columns} numbers")
    return values.reshape(lines, columns)


def _first_bad_line(text: bytes, columns: int, dtype: type[np.generic]) -> int:
    for number, line in enumerate(text.split(b"\n")):
        parts = line.translate(_TO_SPACES).split()
        try:
            np.array(parts, dtype=np.bytes_).astype(dtype)
        except ValueError:
            return number
        if len(parts) != columns:
            return number
    return 0


def read_header_table(path: Path) -> dict[str, int]:
    """Reads a gzipped table of one header line and one row of whole numbers."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            header, values = (stream.readline().strip().split(",") for _ in range(2))
        return {name: int(v) for name, v in zip(header, values, strict=True)}
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise DamagedFile(
            path, f"is not a header and a row of whole numbers ({error})"
        ) from error
