"""A piece of a table, and its columns as text or numbers."""

import contextlib
import math
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tempergat.base import UserError, listed
from tempergat.data.features import is_lost_in_float32
from tempergat.data.user.options import Problems, in_python, option_flag
from tempergat.data.user.splits import split_part

LEAVE_OUT = f"leave the column out with --features {in_python('features')}"
_TRUTH = {"true": 1.0, "false": 0.0}
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+(e[+-]?\d+)?\s*", re.IGNORECASE)
# A mark before three digits may be that of thousands.
_THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2}[.,]\d{3}\s*")


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


def as_numbers(
    table: Table,
    name: str,
    missing: frozenset[str],
    problems: Problems | None = None,
    remedy: str | None = None,
) -> np.ndarray:
    """A column as float32.

    Args:
        table: The table.
        name: The column.
        missing: What `missing_words` returned; such a value becomes NaN.
        problems: Receives missing values, infinity and what float32 cannot hold,
            which None allows.
        remedy: What to do about a word; by default what to do about a feature.

    Raises:
        UserError: A value is not a number; the message names file, row and column.
    """
    column = table.columns[name]
    if table.decimal_comma:
        _refuse_thousands(table, name)
    try:
        if _holds_underscores(column):
            # Python takes 10_0 for a hundred.
            raise ValueError
        wide = column.astype(np.float64)
        for word in missing:
            with contextlib.suppress(ValueError):
                wide[wide == float(word)] = math.nan
    except (ValueError, TypeError, OverflowError):
        row, wide = 0, np.empty(len(column))
        try:
            for row, value in enumerate(column):
                wide[row] = _number_of(value, table.decimal_comma, missing)
        except (ValueError, TypeError, OverflowError):
            raise UserError(
                f"{table.at(row)}: {name} is {column[row]!r}, which is not a number; "
                f"{remedy or _remedy_for_words(name, column)}"
            ) from None
    with np.errstate(over="ignore"):
        values = wide.astype(np.float32)
    wrong = np.flatnonzero(~np.isfinite(values))
    if problems is not None and len(wrong):
        row = int(wrong[0])
        kind = "a missing value" if math.isnan(wide[row]) else "not a finite number"
        problem = (
            f"{table.at(row)}: {name} is {column[row]!r}, which is {kind}; fill it, "
            f"drop the row, or {LEAVE_OUT}"
        )
        problems.add(UserError(problem))
    elif problems is not None and is_lost_in_float32(wide, values):
        problem = (
            f"{table.path}: {name} holds numbers like {column[0]!r}, whose differences "
            "are lost in 32 bits; subtract the smallest of them from all, or "
            f"{LEAVE_OUT}"
        )
        problems.add(UserError(problem))
    return values


def _holds_underscores(column: np.ndarray) -> bool:
    try:
        return "_" in "".join(column.tolist())
    except TypeError:
        return any("_" in value for value in column if isinstance(value, str))


def _refuse_thousands(table: Table, name: str) -> None:
    """Refuses 28,000 and 28.000 where the table does not show what the mark is.

    A comma or point that is followed by any other number of digits is a decimal one.
    """
    for row, value in enumerate(table.columns[name]):
        if not isinstance(value, str) or not _THOUSANDS.fullmatch(value):
            continue
        mark = "," if "," in value else "."
        texts = (v for column in table.columns.values() for v in column)
        if any(_is_decimal(text, mark) for text in texts):
            return
        plain = value.replace(mark, "").strip()
        raise UserError(
            f"{table.at(row)}: {name} is {value!r}, which may be {plain} or "
            f"{value.strip().replace(mark, '.')} in another country; write numbers "
            "without marks of thousands, or some with fewer decimals"
        )


def _is_decimal(text: object, mark: str) -> bool:
    """Whether a text shows that a mark is the decimal one."""
    return (
        isinstance(text, str)
        and re.fullmatch(rf"\s*[+-]?\d*[{mark}]\d+(e[+-]?\d+)?\s*", text.lower())
        is not None
        and not _THOUSANDS.fullmatch(text)
    )


def _remedy_for_words(name: str, column: np.ndarray) -> str:
    if all(word == "" or split_part(word) for word in {*as_text(column)}):
        return (
            f"it seems to be the split: add --split-column {name} (in Python: "
            f"ReadOptions(split_column={name!r})), or {LEAVE_OUT}"
        )
    if len({*map(str, column)}) == len(column):
        return (
            "it differs in every row: if the edges name nodes by it, add "
            f"--id {name} (in Python: ReadOptions(id={name!r})), otherwise {LEAVE_OUT}"
        )
    return (
        "encode it with --one-hot, or leave the column out with --features "
        f"{in_python('one_hot', 'features')}"
    )


def _number_of(value: object, decimal_comma: bool, missing: frozenset[str]) -> float:
    if not isinstance(value, str):
        return float(value)  # type: ignore[arg-type]
    word = value.strip().lower()
    if "_" in word and word not in missing:
        raise ValueError(word)
    if word in missing:
        return math.nan
    if word in _TRUTH:
        return _TRUTH[word]
    if decimal_comma and _DECIMAL_COMMA.fullmatch(word):
        word = word.replace(",", ".")
    return float(word)


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
