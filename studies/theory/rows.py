"""Tables of results: lists of rows with the same columns, and their CSV files."""

from collections.abc import Sequence

from tempergat.base import csv_text
from tempergat.stats import Estimate

Value = str | float | int | bool
Row = dict[str, Value]
Table = list[Row]


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


def _written(value: Value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
