"""Reads tables from CSV and Parquet files, in pieces."""

import csv
import gc
import gzip
import io
import itertools
import os
import stat
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from tempergat.base import UserError, explain_unreadable, first_line
from tempergat.data.tables.table import Table

_TEXT_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
TABLE_SUFFIXES = (*_TEXT_SUFFIXES, ".parquet")
_SEPARATORS = ",;\t|"
# Values in a piece of a table; as text they take about 15 MiB.
_PIECE = 1 << 18


def find_table(folder: Path, name: str) -> Path | None:
    """The table of that name in a folder, in any format; None where there is none.

    Raises:
        UserError: It exists in several formats, or is not a file.
    """
    with explain_unreadable(folder):
        found = [
            path
            for suffix in TABLE_SUFFIXES
            if os.path.lexists(path := folder / f"{name}{suffix}")
        ]
    if len(found) > 1:
        raise UserError(
            f"{folder} has both {found[0].name} and {found[1].name}; remove one"
        )
    if not found:
        return None
    kind = not_a_file(found[0])
    if kind is not None:
        raise UserError(f"{found[0]} is {kind}, but a table is a file; replace it")
    return found[0]


def table_stems(folder: Path) -> list[str]:
    """The names of the tables in a folder, sorted, without their suffixes."""
    with explain_unreadable(folder):
        names = sorted(entry.name for entry in folder.iterdir())
    stems: dict[str, None] = {}
    for name in names:
        suffix = max((s for s in TABLE_SUFFIXES if name.endswith(s)), default="")
        if suffix:
            stems[name.removesuffix(suffix)] = None
    return list(stems)


def unread_files(folder: Path, read: Iterable[Path]) -> list[str]:
    """The files in a folder that are not among those read, but for hidden ones."""
    with explain_unreadable(folder):
        files = sorted(path for path in folder.iterdir() if path.is_file())
    known = {*read}
    return [p.name for p in files if p not in known and not p.name.startswith(".")]


def not_a_file(path: Path) -> str | None:
    """What a path leads to where it is not a file; None for a file."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return "a broken link" if os.path.islink(path) else "missing"
    except OSError:
        return "a link that cannot be followed" if os.path.islink(path) else None
    if stat.S_ISREG(mode):
        return None
    if stat.S_ISDIR(mode):
        return "a folder"
    return "a pipe" if stat.S_ISFIFO(mode) else "a device"


def iter_tables(path: Path) -> Iterator[Table]:
    """Reads a CSV or Parquet file in pieces; there is at least one.

    Text takes far more memory than numbers, so a caller should turn every piece into
    numbers before it asks for the next.

    Raises:
        UserError: The file is empty, broken, or its rows differ in length.
    """
    return _iter_parquet(path) if path.suffix == ".parquet" else _iter_csv(path)


def read_table(path: Path) -> Table:
    """Reads a whole table at once; meant for tables with few or short columns.

    Raises:
        UserError: The file is empty, broken, or its rows differ in length.
    """
    pieces = list(iter_tables(path))
    columns = {
        name: np.concatenate([piece.columns[name] for piece in pieces])
        for name in pieces[0].columns
    }
    return Table(path, columns, np.concatenate([piece.numbers for piece in pieces]))


def _iter_csv(path: Path) -> Iterator[Table]:
    line = 1
    try:
        with explain_unreadable(path), _open_text(path) as stream:
            first = stream.readline()
            separator = _separator(path, first)
            reader = csv.reader(
                itertools.chain([first], stream), strict=True, delimiter=separator
            )
            header = [name.strip() for name in next(reader, [])]
            if not any(header):
                raise UserError(
                    f"{path} is empty; its first line must name the columns"
                )
            _require_distinct(path, header)
            first_row = 2
            size = max(1, _PIECE // len(header))
            for number in itertools.count():
                line = reader.line_num + 1
                with _without_collector():
                    lines = list(itertools.islice(reader, size))
                    if not lines and number > 0:
                        return
                    rows = [row for row in lines if row]
                    is_row = np.fromiter(map(bool, lines), dtype=bool)
                    numbers = first_row + np.flatnonzero(is_row)
                    _require_width(path, header, rows, numbers)
                    table = _table_of_rows(path, header, rows, numbers)
                    table.decimal_comma = separator == ";"
                    first_row += len(lines)
                    del lines, rows
                yield table
    except (csv.Error, UnicodeError) as error:
        raise UserError(
            f"{path}, from row {line} on, is not CSV in UTF-8 ({error}); save the "
            "table again"
        ) from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(
            f"{path} is not a readable gzip file ({first_line(error)}); compress the "
            "table again"
        ) from error


@contextmanager
def _open_text(path: Path) -> Iterator[TextIO]:
    # A missing file or one without permission is explained by the caller.
    with open(path, "rb") as raw:
        packed = path.suffix == ".gz"
        with gzip.open(raw) if packed else raw as binary:
            mark = binary.read(2)
            binary.seek(0)
            # Excel saves "Unicode text" as UTF-16.
            is_wide = mark in (b"\xff\xfe", b"\xfe\xff")
            with _text(binary, "utf-16" if is_wide else "utf-8-sig") as stream:
                yield stream


@contextmanager
def _text(binary: Any, encoding: str) -> Iterator[TextIO]:
    stream = io.TextIOWrapper(binary, encoding=encoding, newline="")
    try:
        yield stream
    finally:
        stream.detach()


def _separator(path: Path, header: str) -> str:
    """The separator of the columns: the one that makes the most of the header."""
    if path.name.endswith((".tsv", ".tsv.gz")):
        return "\t"

    def columns(separator: str) -> int:
        try:
            return len(next(csv.reader([header], delimiter=separator), []))
        except csv.Error:
            return 0

    return max(_SEPARATORS, key=columns)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Turns the garbage collector off: rows of text have no cycles, and searching them
    for cycles would take most of the time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _require_width(
    path: Path, header: list[str], rows: list[list[str]], numbers: np.ndarray
) -> None:
    if set(map(len, rows)) <= {len(header)}:
        return
    wrong = next(n for n, row in enumerate(rows) if len(row) != len(header))
    raise UserError(
        f"{path}, row {numbers[wrong]} has {len(rows[wrong])} values, but the header "
        f"names {len(header)} columns; every row needs {len(header)} values"
    )


def _table_of_rows(
    path: Path, header: list[str], rows: list[list[str]], numbers: np.ndarray
) -> Table:
    values = zip(*rows, strict=True) if rows else ([] for _ in header)
    columns = {
        name: np.array(column, dtype=object)
        for name, column in zip(header, values, strict=True)
    }
    return Table(path, columns, numbers)


def _require_distinct(path: Path, header: list[str]) -> None:
    if len(set(header)) == len(header):
        return
    name = next(name for name in header if header.count(name) > 1)
    raise UserError(
        f"{path}, row 1 names the column {name!r} {header.count(name)} times; "
        "give every column its own name"
    )


def _iter_parquet(path: Path) -> Iterator[Table]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise UserError(
            f"{path} is a Parquet file, which needs pyarrow; install "
            "tempergat[parquet] or save the table as CSV"
        ) from error
    first_row = 1
    try:
        with explain_unreadable(path), pyarrow.parquet.ParquetFile(path) as opened:
            names = opened.schema_arrow.names
            if not names:
                raise UserError(f"{path} has no columns; save the table again")
            _require_distinct(path, names)
            size = max(1, _PIECE // len(names))
            for batch in opened.iter_batches(batch_size=size):
                columns = {}
                for name in names:
                    values = np.empty(len(batch), dtype=object)
                    values[:] = [
                        "" if v is None else v for v in batch[name].to_pylist()
                    ]
                    columns[name] = values
                numbers = first_row + np.arange(len(batch))
                yield Table(path, columns, numbers)
                first_row += len(batch)
            if first_row == 1:
                empty = {name: np.empty(0, object) for name in names}
                yield Table(path, empty, np.empty(0, dtype=np.int64))
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise UserError(
            f"{path} is not a readable Parquet file ({first_line(error)}); save the "
            "table again"
        ) from error
