"""Tables of results: lists of rows with the same columns, and their CSV files."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from tempergat.base import UserError, csv_text, write_into
from tempergat.stats import Estimate

Value = str | float | int | bool
Row = dict[str, Value]
Table = list[Row]

TABLE_NAMES = (
    "proof_steps",
    "temperature_curves",
    "best_temperature",
    "gate_curves",
    "gate_boundary",
    "gain_order",
    "temperature_scenarios",
    "gate_scenarios",
    "layer_check",
    "learned",
)


def estimated(name: str, estimate: Estimate) -> Row:
    """Columns ``name``, ``name_low`` and ``name_high`` of one estimate, 95 %."""
    low, high = estimate.interval()
    return {
        name: float(estimate.value),
        f"{name}_low": float(low),
        f"{name}_high": float(high),
    }


def to_csv(table: Sequence[Row]) -> str:
    """A table as CSV; numbers to six significant digits."""
    return csv_text(
        [{name: _written(value) for name, value in row.items()} for row in table]
    )


def write_tables(tables: Mapping[str, Sequence[Row]], folder: Path) -> list[Path]:
    """Write tables as CSV files, named after the tables."""
    return [
        write_into(folder, f"{name}.csv", to_csv(table))
        for name, table in tables.items()
    ]


def read_tables(folder: Path) -> dict[str, Table]:
    """The tables of the whole analysis, as `write_tables` wrote them.

    Raises:
        UserError: One is missing.
    """
    return {name: _read_table(folder / f"{name}.csv") for name in TABLE_NAMES}


def _read_table(path: Path) -> Table:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return [
                {name: _read(text) for name, text in cells.items()}
                for cells in csv.DictReader(file)
            ]
    except OSError as error:
        raise UserError(
            f"cannot read {path}: {error.strerror}; run this in the project's folder, "
            "or make it with `tempergat reproduce theory --run`"
        ) from error


def _read(text: str) -> Value:
    if text in ("yes", "no"):
        return text == "yes"
    try:
        return float(text)
    except ValueError:
        return text


def _written(value: Value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
