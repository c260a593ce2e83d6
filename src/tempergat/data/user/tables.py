"""Tables of user graphs, in CSV or Parquet, with errors that name file and row."""

import csv
import gc
import itertools
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tempergat.base import UserError, explain_unreadable, first_line

TABLE_SUFFIXES = (".csv", ".parquet")
# Values in a piece of a table; as text they take about 15 MiB.
_PIECE = 1 << 18
# Words that stand for a number in a column of numbers, as pandas and R write them.
_SPELLED = {"true": 1.0, "false": 0.0} | dict.fromkeys(
    ("", "na", "n/a", "null", "none"), math.nan
)


@dataclass
class Table:
    """A piece of a table: some rows of its columns, as text or numbers.

    Attributes:
        path: The file.
        columns: The columns by name, in the file's order.
        numbers: The number of each row in the file. Data begin at row 2 in a CSV
            file, whose first row is the header, and at row 1 in a Parquet file; blank
            rows are left out.
    """

    path: Path
    columns: dict[str, np.ndarray]
    numbers: np.ndarray

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def at(self, row: int) -> str:
        """File and row, for an error."""
        return f"{self.path}, row {self.numbers[row]}"

    def column(self, *names: str) -> np.ndarray:
        """The first column that exists under one of the names.

        Raises:
            UserError: There is none.
        """
        for name in names:
            if name in self.columns:
                return self.columns[name]
        found, remedy = ", ".join(self.columns), "add it or rename one"
        if len(self.columns) == 1 and any(mark in found for mark in ";\t|"):
            found, remedy = repr(found), "separate the columns by commas"
        raise UserError(
            f"{self.path} has no column {' or '.join(names)}, only {found}; {remedy}"
        )


def find_table(folder: Path, name: str) -> Path | None:
    """The table of that name in a folder, in either format; None where there is none.

    Raises:
        UserError: It exists in both formats.
    """
    found = [folder / f"{name}{suffix}" for suffix in TABLE_SUFFIXES]
    with explain_unreadable(folder):
        found = [path for path in found if path.is_file()]
    if len(found) > 1:
        raise UserError(
            f"{folder} has both {found[0].name} and {found[1].name}; remove one"
        )
    return found[0] if found else None


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
        with (
            explain_unreadable(path),
            open(path, newline="", encoding="utf-8-sig") as stream,
        ):
            reader = csv.reader(stream, strict=True)
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
                    first_row += len(lines)
                    del lines, rows
                yield table
    except (csv.Error, UnicodeDecodeError) as error:
        raise UserError(
            f"{path}, from row {line} on, is not CSV in UTF-8 ({error}); save the "
            "table again"
        ) from error


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
    for name in header:
        if header.count(name) > 1:
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


def as_text(column: np.ndarray) -> np.ndarray:
    """A column as stripped text; whole numbers without a decimal point, NaN as ""."""
    values = column.tolist()
    if float in set(map(type, values)):
        values = [_number_as_text(v) if type(v) is float else v for v in values]
    return np.array(list(map(str.strip, map(str, values))), dtype=object)


def _number_as_text(value: float) -> str:
    if math.isnan(value):
        return ""
    return str(int(value)) if value.is_integer() else str(value)


def as_numbers(table: Table, name: str, require_finite: bool) -> np.ndarray:
    """A column as float32.

    Args:
        table: The table.
        name: The column.
        require_finite: Whether NaN, infinity and what float32 cannot hold are refused.

    Raises:
        UserError: A value is not a number; the message names file, row and column.
    """
    column = table.columns[name]
    try:
        wide = _as_float64(column)
    except (ValueError, TypeError, OverflowError):
        row = next(row for row, value in enumerate(column) if not _is_number(value))
        raise UserError(
            f"{table.at(row)}: {name} is {column[row]!r}, which is not a number; "
            "features must be numbers, so encode it or drop the column"
        ) from None
    with np.errstate(over="ignore"):
        values = wide.astype(np.float32)
    wrong = np.flatnonzero(~np.isfinite(values))
    if require_finite and len(wrong):
        raise UserError(
            f"{table.at(wrong[0])}: {name} is {column[wrong[0]]!r}, which is not a "
            "finite number; fill it or drop the row"
        )
    return values


def _as_float64(column: np.ndarray) -> np.ndarray:
    try:
        return column.astype(np.float64)
    except (ValueError, TypeError):
        spelled = column.copy()
        for row, value in enumerate(column):
            if isinstance(value, str):
                spelled[row] = _SPELLED.get(value.strip().lower(), value)
        return spelled.astype(np.float64)


def _is_number(value: object) -> bool:
    column = np.empty(1, dtype=object)
    column[0] = value
    try:
        _as_float64(column)
    except (ValueError, TypeError, OverflowError):
        return False
    return True
