"""Rows of the tables of results, and their CSV."""

from studies.theory.bootstrap import Estimate
from tempergat.base import csv_text

Value = str | float | int | bool
Row = dict[str, Value]
Table = list[Row]


def estimated(name: str, estimate: Estimate) -> Row:
    """Columns ``name``, ``name_low`` and ``name_high`` of one estimate, 95 %."""
    low, high = (float(end) for end in estimate.interval())
    return {name: float(estimate.value), f"{name}_low": low, f"{name}_high": high}


def to_csv(table: Table) -> str:
    """A table as CSV; numbers to six significant digits."""
    return csv_text([{k: _written(value) for k, value in row.items()} for row in table])


def _written(value: Value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
