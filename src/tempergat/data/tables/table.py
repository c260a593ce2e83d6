"""A piece of a table, and its columns as text."""

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tempergat.base import UserError, listed
from tempergat.data.user.options import option_flag


@dataclass
class Table:
    """A piece of a table: some rows of its columns, as text or numbers.

    Attributes:
        path: The file.
        columns: The columns by name, in the file's order.
        numbers: The number of each row in the file. Data begin at row 2 in a CSV
            file, whose first row is the header, and at row 1 in a Parquet file; blank
            rows are left out.
        decimal_comma: Whether a comma may stand for the decimal point, as where
            columns are separated by semicolons.
    """

    path: Path
    columns: dict[str, np.ndarray]
    numbers: np.ndarray
    decimal_comma: bool = False

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def without(self, names: Collection[str]) -> "Table":
        """The table without some of its columns."""
        kept = {name: c for name, c in self.columns.items() if name not in names}
        return replace(self, columns=kept)

    def at(self, row: int) -> str:
        """File and row, for an error."""
        return f"{self.path}, row {self.numbers[row]}"


def as_text(column: np.ndarray) -> np.ndarray:
    """A column as stripped text; whole numbers without a decimal point, NaN as ""."""
    values = column.tolist()
    if float in set(map(type, values)):
        values = [_number_as_text(v) if type(v) is float else v for v in values]
    return np.array(list(map(str.strip, map(str, values))), dtype=object)


def different_texts(column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The texts that a column holds, and which of them each row has."""
    import pandas

    try:
        rows, values = pandas.factorize(column, use_na_sentinel=False)
    except TypeError:
        # Lists, in a Parquet file.
        rows, values = pandas.factorize(as_text(column))
    return as_text(values), rows


def as_known_text(column: np.ndarray, missing: frozenset[str]) -> np.ndarray:
    """A column as text, where every missing value is ""."""
    texts = as_text(column)
    gaps = [row for row, text in enumerate(texts) if text.lower() in missing]
    texts[gaps] = ""
    return texts


def _number_as_text(value: float) -> str:
    if math.isnan(value):
        return ""
    return str(int(value)) if value.is_integer() else str(value)


def find_column(table: Table, name: str, option: str) -> str:
    """The column that an option names, in any case.

    Raises:
        UserError: There is none.
    """
    if name in table.columns:
        return name
    alike = [each for each in table.columns if each.lower() == name.lower()]
    if len(alike) == 1:
        return alike[0]
    raise UserError(
        f"{option_flag(option)} names {name!r}, but the columns of {table.path} are "
        f"{listed(list(table.columns), 9)}; choose among these"
    )
