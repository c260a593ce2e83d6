"""Reads tables from CSV and Parquet files, in pieces."""

import csv
import gzip
import io
import itertools
import os
import re
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
# Characters in a piece of a table.
_PIECE = 1 << 21


def find_table(folder: Path, name: str) -> Path | None:
    """The table of that name in a folder, in any format; None where there is none.

    Raises:
        UserError: It exists in several formats, or is not a file.
    """
    with explain_unreadable(folder):
        paths = [folder / f"{name}{suffix}" for suffix in TABLE_SUFFIXES]
        paths = [path for path in paths if os.path.lexists(path)]
    if not paths:
        return None
    if len(paths) > 1:
        names = f"{paths[0].name} and {paths[1].name}"
        raise UserError(f"{folder} has both {names}; remove one")
    kind = not_a_file(paths[0])
    if kind is not None:
        raise UserError(f"{paths[0]} is {kind}, but a table is a file; replace it")
    return paths[0]


def table_stems(folder: Path) -> list[str]:
    """The names of the tables in a folder, sorted, without their suffixes."""
    with explain_unreadable(folder):
        names = sorted(entry.name for entry in folder.iterdir())
    stems = [
        name.removesuffix(suffix)
        for name in names
        for suffix in TABLE_SUFFIXES
        if name.endswith(suffix)
    ]
    return list(dict.fromkeys(stems))


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
    import pandas

    line = 1
    try:
        with explain_unreadable(path), _open_text(path) as stream:
            first = stream.readline()
            separator = _separator(path, first)
            marks: Any = {"strict": True, "delimiter": separator}
            reader = csv.reader(itertools.chain([first], stream), **marks)
            header = [name.strip() for name in next(reader, [])]
            if not any(header):
                raise UserError(
                    f"{path} is empty; its first line must name the columns"
                )
            _require_distinct(path, header)
            line, row = reader.line_num + 1, 2
            while _are_plain(lines := stream.readlines(_PIECE), separator, len(header)):
                frame = pandas.read_csv(
                    io.StringIO("".join(lines)),
                    sep=separator,
                    header=None,
                    names=header,
                    dtype=object,
                    na_filter=False,
                    skip_blank_lines=False,
                )
                columns = {name: frame[name].to_numpy() for name in header}
                numbers = row + np.arange(len(lines))
                yield Table(path, columns, numbers, separator == ";")
                row += len(lines)
                line += len(lines)
            reader = csv.reader(itertools.chain(lines, stream), **marks)
            plain_end = line
            size = max(1, _PIECE // (8 * len(header)))
            while (records := list(itertools.islice(reader, size))) or row == 2:
                numbers = row + np.flatnonzero([len(record) for record in records])
                columns = _columns_of_rows(path, header, records, numbers)
                yield Table(path, columns, numbers, separator == ";")
                row += max(1, len(records))
                line = plain_end + reader.line_num
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
    with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as binary:
        mark = binary.read(2)
        binary.seek(0)
        # Excel saves "Unicode text" as UTF-16.
        is_wide = mark in (b"\xff\xfe", b"\xfe\xff")
        encoding = "utf-16" if is_wide else "utf-8-sig"
        with io.TextIOWrapper(binary, encoding=encoding, newline="") as stream:
            yield stream


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


def _are_plain(lines: list[str], separator: str, width: int) -> bool:
    """Whether each line is a row of that many values, which pandas reads as we do.

    pandas would fill up short rows, end a value at a zero byte, go on after a closing
    quote and drop a byte order mark. It cannot tell a blank line from one empty value.
    """
    text = "".join(lines)
    if width == 1 or not text or text[0] == "\ufeff" or "\0" in text:
        return False
    if '"' not in text:
        return {*map(str.count, lines, itertools.repeat(separator))} == {width - 1}
    mark = re.escape(separator)
    value = rf'(?:"[^"\r\n]*"|[^"\r\n{mark}]*)'
    row = re.compile(rf"{value}(?:{mark}{value}){{{width - 1}}}[\r\n]*")
    return all(map(row.fullmatch, lines))


def _columns_of_rows(
    path: Path, header: list[str], records: list[list[str]], numbers: np.ndarray
) -> dict[str, np.ndarray]:
    rows = [record for record in records if record]
    width = len(header)
    wrong = next((n for n, row in enumerate(rows) if len(row) != width), None)
    if wrong is not None:
        raise UserError(
            f"{path}, row {numbers[wrong]} has {len(rows[wrong])} values, but the "
            f"header names {width} columns; every row needs {width} values"
        )
    values = np.array(rows, dtype=object).reshape(len(rows), width)
    return dict(zip(header, values.T, strict=True))


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
            size = max(1, _PIECE // (8 * len(names)))
            for batch in opened.iter_batches(batch_size=size):
                columns = {}
                for name in names:
                    values = np.empty(len(batch), dtype=object)
                    column = batch[name]
                    if pyarrow.types.is_binary(column.type):
                        # Some programs save texts as bytes.
                        column = column.cast(pyarrow.string())
                    values[:] = ["" if v is None else v for v in column.to_pylist()]
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
