"""What temperatures and gates learned, by method and layer."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from tempergat.comparison.report.formats import Table, mean_and_std
from tempergat.training import Run

# A heading, the column of a row, and the attributes of the run and of its record.
_COLUMNS = (
    ("T", "temperature", "selected", "temperatures"),
    ("gate", "gate", "selected", "gate_means"),
    ("last T", "last_temperature", "last", "temperatures"),
    ("last gate", "last_gate", "last", "gate_means"),
)


def learned_rows(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """A row of plain values for each method and layer with a temperature or a gate.

    Means and standard deviations over finished runs; None for what a layer lacks.
    """
    rows = []
    for method in dict.fromkeys(run.method for run in runs):
        mine = [run for run in runs if run.method == method and run.status == "done"]
        columns = {
            name: zip(*(getattr(getattr(r, at), of) for r in mine), strict=True)
            for _, name, at, of in _COLUMNS
        }
        for layer, values in enumerate(zip_longest(*columns.values(), fillvalue=()), 1):
            row: dict[str, Any] = {"method": method, "layer": layer}
            for name, of_runs in zip(columns, values, strict=True):
                count = len(of_runs)
                row[name] = float(np.mean(of_runs)) if count else None
                spread = float(np.std(of_runs, ddof=1)) if count > 1 else None
                row[f"{name}_std"] = spread
            rows.append(row)
    return rows


def learned_table(dataset: str, rows: Sequence[dict[str, Any]]) -> Table:
    """What `learned_rows` found, without columns that have nothing."""
    shown = [c for c in _COLUMNS if any(row[c[1]] is not None for row in rows)]
    return Table(
        f"{dataset}: temperature T and mean gate by layer, at the epoch of the scores "
        "and at the last one",
        ("method", "layer", *(heading for heading, *_ in shown)),
        tuple(
            (
                row["method"],
                str(row["layer"]),
                *(mean_and_std(row[n], row[f"{n}_std"], 3) for _, n, *_ in shown),
            )
            for row in rows
        ),
    )
