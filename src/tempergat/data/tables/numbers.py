"""Columns of tables as numbers, and what becomes of missing values."""

import contextlib
import math
import re
import shlex
from collections import Counter
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np

from tempergat.base import counted, listed
from tempergat.data.features import is_lost_in_float32
from tempergat.data.tables.table import Table, as_text
from tempergat.data.user.options import GAP, ReadOptions, in_python
from tempergat.data.user.reading import Question, Reading
from tempergat.data.user.splits import split_part

LEAVE_OUT = f"leave the column out with --drop {in_python('drop')}"
_LEAVE_OUT_OF_EDGES = (
    f"leave the column out of the edge features {in_python('edge_features')}"
)
# A column with more different words is rather left out than encoded.
_MOST_WORDS = 50
# What to write instead of numbers and dates that are not understood.
_OTHER_FORMS = {
    "dates like 2020-12-31 and add --dates": re.compile(r"(\d+[./-]){2}\d+.*"),
    "numbers like 1234.5": re.compile(r"\W*\d[\d.,' ]*\W*"),
}
_TRUTH = {"true": 1.0, "false": 0.0}
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+(e[+-]?\d+)?\s*", re.IGNORECASE)
# A number with zeros before it, as those that stand in no sum.
_CODE = re.compile(r"\s*0\d+\s*")
# Where codes are looked for.
_FIRST_ROWS = 1000
# A mark before three digits may be that of thousands.
_THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2}[.,]\d{3}\s*")


def as_numbers(
    table: Table,
    name: str,
    reading: Reading,
    remedy: str | None = None,
    of_edges: bool = False,
) -> np.ndarray:
    """A column as float32, with NaN for a missing value.

    Args:
        table: The table.
        name: The column.
        reading: How it is read. It receives words, missing values that are not filled,
            infinity and what float32 cannot hold.
        remedy: What to do about a wrong value, where the column is not a feature: then
            only words are wrong.
        of_edges: Whether the feature is one of edges.

    Raises:
        UserError: A value is not a number; the message names file, row and column.
    """
    options, column = reading.options, table.columns[name]
    # A label of -1 is often unknown, a feature of -1 is a number.
    missing = reading.missing - {"-1"}
    leave_out = _LEAVE_OUT_OF_EDGES if of_edges else LEAVE_OUT
    dropped: dict[str, Any] = {} if of_edges else {"drop": (name,)}
    unclear = _unclear_thousands(table, name) if table.decimal_comma else None
    if unclear is not None:
        reading.problem(Question(f"{unclear}, or {leave_out}", **dropped))
        return np.full(len(column), math.nan, np.float32)
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
            reading.problem(Question(problem, **({} if remedy else settled)))
            return np.full(len(column), math.nan, np.float32)
    with np.errstate(over="ignore"):
        values = wide.astype(np.float32)
    if remedy is not None:
        return values
    code = next((v for v in column[:_FIRST_ROWS] if _CODE.fullmatch(str(v))), None)
    note = (
        f"{table.path}: {name} holds codes like {code}, which are taken for numbers; "
        f"encode it with --one-hot {in_python('one_hot')}, or {leave_out}"
    )
    if code is not None and note not in reading.notes:
        reading.notes.append(note)
    is_wrong = ~np.isfinite(values)
    if options.fill is not None:
        is_wrong &= ~np.isnan(wide)
    wrong = np.flatnonzero(is_wrong)
    if len(wrong):
        row = int(wrong[0])
        is_missing = math.isnan(wide[row])
        kind = "a missing value" if is_missing else "not a finite number"
        settled = {"fill": "median"} if is_missing else dropped
        how = "fill it, for example with --fill median" if is_missing else "correct it"
        problem = (
            f"{table.at(row)}: {name} is {column[row]!r}, which is {kind}; {how}, drop "
            f"the row, or {leave_out}"
        )
        reading.problem(Question(problem, **settled))
    elif is_lost_in_float32(wide, values):
        problem = (
            f"{table.path}: {name} holds numbers like {column[0]!r}, whose differences "
            "are lost in 32 bits; subtract the smallest of them from all, or "
            f"{leave_out}"
        )
        reading.problem(Question(problem, **dropped))
    return values


def _holds_underscores(column: np.ndarray) -> bool:
    try:
        return "_" in "".join(column.tolist())
    except TypeError:
        return any("_" in value for value in column if isinstance(value, str))


def _unclear_thousands(table: Table, name: str) -> str | None:
    """Whether 28,000 or 28.000 is there and the table does not show what the mark is.

    A comma or point that is followed by any other number of digits is a decimal one.
    """
    for row, value in enumerate(table.columns[name]):
        if not isinstance(value, str) or not _THOUSANDS.fullmatch(value):
            continue
        mark = "," if "," in value else "."
        texts = (v for column in table.columns.values() for v in column)
        if any(_is_decimal(text, mark) for text in texts):
            return None
        plain = value.replace(mark, "").strip()
        return (
            f"{table.at(row)}: {name} is {value!r}, which may be {plain} or "
            f"{value.strip().replace(mark, '.')} in another country; write numbers "
            "without marks of thousands, or some with fewer decimals"
        )
    return None


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
            f"{shlex.quote(name)} (in Python: ReadOptions(id={name!r})), otherwise "
            f"{LEAVE_OUT}",
            dropped | {"id": name},
        )
    for form, like in _OTHER_FORMS.items():
        if len(words) > _MOST_WORDS and all(map(like.fullmatch, words)):
            return f"write {form}, or {leave_out}", dropped
    return (
        f"encode it with --one-hot {in_python('one_hot')}, or {leave_out}",
        {"one_hot": (name,)},
    )


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


def fill_gaps(
    path: Path, columns: dict[str, np.ndarray], reading: Reading, of: str = ""
) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
    """Fills missing values of columns in place, where the options say how.

    Args:
        path: The file, for errors and notes.
        columns: Numbers with NaN for a missing value, or texts with "".
        reading: How they are filled, and what a model passes on. The values come from
            the options, or from the columns. Nothing is filled where something is
            wrong.
        of: What the names of the columns are followed by in the options.

    Returns:
        For each column of numbers that is flagged, 0 or 1 for whether its value was
        missing; and a note where something was filled.

    Raises:
        Question: A column has no value in any row.
    """
    options = reading.options
    if options.fill is None or reading.errors:
        return {}, ()
    known = {name: rest for name, *rest in options.fill_values}
    flags: dict[str, np.ndarray] = {}
    fills: list[tuple[str, float | str, bool]] = []
    filled: list[str] = []
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
            value = GAP if options.fill == "flag" else most
        elif value is None:
            different, counts = np.unique(column[~gaps], return_counts=True)
            is_mode = options.fill == "most-frequent"
            most = different[counts.argmax()] if is_mode else np.median(column[~gaps])
            value = float(most)
        column[gaps] = value
        if gaps.any():
            filled.append(f"{counted(int(gaps.sum()), 'gap')} in {name}")
        fills.append((name + of, value, bool(is_flagged)))
        if is_flagged and not is_word:
            flags[name] = gaps.astype(np.float32)
    if fills:
        earlier = reading.learned.get("fill_values", ())
        reading.learned["fill_values"] = (*earlier, *fills)
    note = f"{path}: --fill {options.fill} filled {listed(filled, 9)}"
    return flags, (note,) if filled else ()
