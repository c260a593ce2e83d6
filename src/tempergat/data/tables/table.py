"""A piece of a table, and its columns as text or numbers."""

import contextlib
import math
import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np

from tempergat.base import UserError, counted, listed
from tempergat.data.features import is_lost_in_float32
from tempergat.data.user.options import (
    Problems,
    Question,
    ReadOptions,
    in_python,
    missing_numbers,
    option_flag,
)
from tempergat.data.user.splits import split_part

LEAVE_OUT = f"leave the column out with --drop {in_python('drop')}"
_LEAVE_OUT_OF_EDGES = (
    f"leave the column out of the edge features {in_python('edge_features')}"
)
# A column with more different words is rather left out than encoded.
_MOST_WORDS = 50
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


def as_numbers(
    table: Table,
    name: str,
    options: ReadOptions,
    problems: Problems | None = None,
    remedy: str | None = None,
    of_edges: bool = False,
) -> np.ndarray:
    """A column as float32.

    Args:
        table: The table.
        name: The column.
        options: Which words stand for a missing value, which becomes NaN, whether such
            values are filled later, and what dates become.
        problems: Receives words, missing values that are not filled, infinity and what
            float32 cannot hold; None raises for words and allows the others.
        remedy: What to do about a wrong value; by default what to do about a feature.
        of_edges: Whether the feature is one of edges.

    Raises:
        UserError: A value is not a number; the message names file, row and column.
    """
    column, missing = table.columns[name], missing_numbers(options)
    leave_out = _LEAVE_OUT_OF_EDGES if of_edges else LEAVE_OUT
    dropped: dict[str, Any] = {} if of_edges else {"drop": (name,)}
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
        row, wide = 0, np.full(len(column), math.nan)
        try:
            for row, value in enumerate(column):
                wide[row] = _number_of(value, table.decimal_comma, missing, options)
        except (ValueError, TypeError, OverflowError):
            words, settled = _remedy_for_words(
                name, column, missing, leave_out, dropped, of_edges
            )
            problem = (
                f"{table.at(row)}: {name} is {column[row]!r}, which is not a number; "
                f"{remedy or words}"
            )
            (problems or Problems()).add(
                Question(problem, **({} if remedy else settled))
            )
            return np.full(len(column), math.nan, np.float32)
    with np.errstate(over="ignore"):
        values = wide.astype(np.float32)
    is_wrong = ~np.isfinite(values)
    if options.fill is not None and remedy is None:
        is_wrong &= ~np.isnan(wide)
    wrong = np.flatnonzero(is_wrong)
    if problems is not None and len(wrong):
        row = int(wrong[0])
        is_missing = math.isnan(wide[row])
        kind = "a missing value" if is_missing else "not a finite number"
        settled = {"fill": "median"} if is_missing else dropped
        how = "fill it, for example with --fill median" if is_missing else "correct it"
        problem = f"{table.at(row)}: {name} is {column[row]!r}, which is {kind}; " + (
            remedy or f"{how}, drop the row, or {leave_out}"
        )
        problems.add(Question(problem, **({} if remedy else settled)))
    elif problems is not None and is_lost_in_float32(wide, values):
        problem = (
            f"{table.path}: {name} holds numbers like {column[0]!r}, whose differences "
            "are lost in 32 bits; subtract the smallest of them from all, or "
            f"{leave_out}"
        )
        problems.add(Question(problem, **dropped))
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


def _remedy_for_words(
    name: str,
    column: np.ndarray,
    missing: frozenset[str],
    leave_out: str,
    dropped: dict[str, Any],
    of_edges: bool,
) -> tuple[str, dict[str, Any]]:
    """What to do about a column that does not hold numbers, also as options."""
    words = {text for text in as_text(column) if text.lower() not in missing}
    if all(map(split_part, words)) and not of_edges:
        return (
            f"it seems to be the split: add --split-column {name} (in Python: "
            f"ReadOptions(split_column={name!r})), or {LEAVE_OUT}",
            {"split_column": name},
        )
    if all(_days(word) is not None for word in words):
        return (
            "it seems to be a date: --dates years or --dates days makes it a number "
            f"{in_python('dates')}, or {leave_out}",
            {"dates": "days"},
        )
    if len({*map(str, column)}) == len(column) and not of_edges:
        return (
            "it differs in every row: if the edges name nodes by it, add --id "
            f"{name} (in Python: ReadOptions(id={name!r})), otherwise {LEAVE_OUT}",
            dropped | {"id": name},
        )
    return (
        f"encode it with --one-hot {in_python('one_hot')}, or {leave_out}",
        {"one_hot": (name,)} if len(words) <= _MOST_WORDS else dropped,
    )


Fills = tuple[tuple[str, float | str, bool], ...]


def fill_gaps(
    path: Path,
    columns: dict[str, np.ndarray],
    options: ReadOptions,
    problems: Problems,
    of: str = "",
) -> tuple[dict[str, np.ndarray], Fills, tuple[str, ...]]:
    """Fills missing values of columns in place, where the options say how.

    Args:
        path: The file, for errors and notes.
        columns: Numbers with NaN for a missing value, or texts with "".
        options: How they are filled. The values come from the options, which a model
            passes on, or from the columns.
        problems: What was found so far. Nothing is filled where something is wrong.
        of: What the names of the columns are followed by in the options.

    Returns:
        For each column of numbers that is flagged, 0 or 1 for whether its value was
        missing; what a model passes on; and a note where something was filled.

    Raises:
        Question: A column has no value in any row.
    """
    if options.fill is None or problems.errors:
        return {}, (), ()
    known = {name: rest for name, *rest in options.fill_values}
    flags: dict[str, np.ndarray] = {}
    fills: list[tuple[str, float | str, bool]] = []
    count = 0
    for name, column in columns.items():
        is_word = column.dtype == object
        gaps = column == "" if is_word else np.isnan(column)
        is_new = options.fill == "flag" and gaps.any()
        value, is_flagged = known.get(name + of, (None, is_new))
        if value is None and gaps.all():
            message = f"{path}: {name} has no value in any row; {LEAVE_OUT}"
            raise Question(message, drop=(name,))
        if value is None and is_word:
            most = Counter(column[~gaps].tolist()).most_common(1)[0][0]
            value = "missing" if options.fill == "flag" else most
        elif value is None:
            different, counts = np.unique(column[~gaps], return_counts=True)
            is_mode = options.fill == "most-frequent"
            most = different[counts.argmax()] if is_mode else np.median(column[~gaps])
            value = float(most)
        column[gaps] = value
        count += int(gaps.sum())
        fills.append((name + of, value, bool(is_flagged)))
        if is_flagged and not is_word:
            flags[name] = gaps.astype(np.float32)
    note = (
        f"{path}: {counted(count, 'missing value')} of features filled by --fill "
        f"{options.fill}"
    )
    return flags, tuple(fills), (note,) if count else ()


def _days(text: str) -> float | None:
    """The days from 1970 to a date like 2020-12-31; None for anything else."""
    try:
        day = datetime.fromisoformat(text)
    except ValueError:
        return None
    is_short = len(text) < len("2020-12-31")
    return None if is_short else day.replace(tzinfo=UTC).timestamp() / 86400


def _number_of(
    value: object, decimal_comma: bool, missing: frozenset[str], options: ReadOptions
) -> float:
    if options.dates is not None and isinstance(value, str | date):
        text = value.strip() if isinstance(value, str) else value.isoformat()
        days = _days(text)
        if days is not None:
            return float(text[:4]) if options.dates == "years" else days
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
