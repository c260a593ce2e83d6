"""Reads tables of numbers from text files, plain or gzipped."""

import gzip
import re
import warnings
import zlib
from pathlib import Path

import numpy as np

from tempergat.base import first_line
from tempergat.data.formats.errors import DamagedFile


def read_numbers(
    path: Path,
    dtype: type[np.generic],
    columns: int | None = None,
    rows: int | None = None,
    header_lines: int = 0,
) -> np.ndarray:
    """Reads a table of numbers, separated by commas, tabs or spaces.

    Args:
        path: The file; one that ends in `.gz` is unpacked.
        dtype: Type of the result.
        columns: Number of values in a row; as many as in the first one when left out.
        rows: Number of rows, where it is known; any other number is an error.
        header_lines: How many lines come before the numbers.

    Returns:
        An array of shape (rows, columns).

    Raises:
        DamagedFile: The file is damaged or holds anything but such rows.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8") as stream:
            lines = [stream.readline() for _ in range(header_lines + 1)]
        separator = "," if "," in lines[-1] else None
        columns = columns or len(lines[-1].split(separator))
        try:
            table = _parse(path, dtype, separator, header_lines)
        except ValueError:
            if not np.issubdtype(dtype, np.integer):
                raise
            table = _as_integers(_parse(path, np.float64, separator, header_lines))
    except (EOFError, zlib.error, gzip.BadGzipFile, UnicodeDecodeError) as error:
        raise DamagedFile(path, f"is a damaged file ({first_line(error)})") from error
    except ValueError as error:
        row = _row_of(str(error)) + header_lines
        raise DamagedFile(
            f"{path}, row {row}", f"does not hold {columns} {_kind(dtype)}"
        ) from error
    if table.size and table.shape[1] != columns:
        where = f"{path}, row {header_lines + 1}"
        raise DamagedFile(where, f"does not hold {columns} {_kind(dtype)}")
    if rows is not None and len(table) != rows:
        raise DamagedFile(path, f"has {len(table)} rows, but should have {rows}")
    return table.reshape(-1, columns)


def _kind(dtype: type[np.generic]) -> str:
    return "whole numbers" if np.issubdtype(dtype, np.integer) else "numbers"


def _parse(
    path: Path, dtype: type[np.generic], separator: str | None, header_lines: int
) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "loadtxt: input contained no data")
        # Otherwise numpy would cut 1.5 to 1.
        warnings.simplefilter("error", DeprecationWarning)
        return np.loadtxt(
            path,
            dtype,
            comments=None,
            delimiter=separator,
            skiprows=header_lines,
            ndmin=2,
            encoding="utf-8",
        )


def _as_integers(table: np.ndarray) -> np.ndarray:
    """Whole numbers that are written with a decimal point, like `736389.0`."""
    # Beyond, floats do not hold every whole number.
    is_whole = (np.rint(table) == table) & (np.abs(table) < 2**53)
    if not is_whole.all():
        row = int(np.flatnonzero(~is_whole.all(axis=1))[0])
        raise ValueError(f"no whole numbers at row {row + 1}")
    return table.astype(np.int64)


def _row_of(message: str) -> int:
    """The row that numpy complains about, from 1; it numbers bad values from 0."""
    place = re.search(r"at row (\d+)", message)
    row = int(place[1]) if place else 1
    return row + 1 if message.startswith("could not convert") else row


def read_edges(path: Path, *sizes: int, header_lines: int = 0) -> np.ndarray:
    """Reads the two ends of every edge, of shape (2, edges).

    Args:
        path: A table of two columns.
        sizes: The number of source and of target nodes; one number for both.
        header_lines: How many lines come before the edges.

    Raises:
        DamagedFile: The file is damaged, or names a node that there is not.
    """
    table = read_numbers(path, np.int64, 2, header_lines=header_lines)
    edges = np.ascontiguousarray(table.T)
    require_nodes(path, edges, *sizes, first_row=header_lines + 1)
    return edges


def require_nodes(
    path: Path, ends: np.ndarray, *sizes: int, first_row: int = 1
) -> None:
    """Checks node numbers against the number of nodes.

    Args:
        path: The file, for the error.
        ends: Node numbers of shape (sides, edges), or of one side alone.
        sizes: The number of nodes of each side, or one number for all sides.
        first_row: The row of the file with the first of them.

    Raises:
        DamagedFile: A node number is negative or too large.
    """
    for side, size in zip(np.atleast_2d(ends), (*sizes, sizes[-1]), strict=False):
        if len(side) and not (side.min() >= 0 and side.max() < size):
            row = int(np.flatnonzero((side < 0) | (side >= size))[0])
            problem = f"names node {side[row]}, but there are {size} nodes"
            raise DamagedFile(f"{path}, row {row + first_row}", problem)


def require_once(path: Path, numbers: np.ndarray, what: str = "node") -> None:
    """Checks that a file lists no number twice.

    Args:
        path: The file, for the error.
        numbers: The numbers in the order of its rows.
        what: What they number.

    Raises:
        DamagedFile: A number is listed again.
    """
    _, first = np.unique(numbers, return_index=True)
    if len(first) < len(numbers):
        row = int(np.setdiff1d(np.arange(len(numbers)), first)[0])
        problem = f"lists {what} {numbers[row]} a second time"
        raise DamagedFile(f"{path}, row {row + 1}", problem)


def node_mask(path: Path, nodes: np.ndarray, num_nodes: int) -> np.ndarray:
    """The mask of the nodes that a file lists, each of them once."""
    require_nodes(path, nodes, num_nodes)
    require_once(path, nodes)
    mask = np.zeros(num_nodes, dtype=bool)
    mask[nodes] = True
    return mask
