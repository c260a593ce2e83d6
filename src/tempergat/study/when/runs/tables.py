"""The rows of several stages, and their files, while runs are trained."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from tempergat.study.when.runs.rows import (
    CSV_OF_STAGE,
    Key,
    Row,
    Stage,
    read_rows,
    write_rows,
)

# Rows are written this often while groups are trained, and at the end.
_SAVE_EVERY_S = 5.0


class Tables:
    """The rows of some stages.

    Args:
        results: The folder of results.
        stages: The stages.
        on_saved: Called after rows were written while groups are trained.
    """

    def __init__(
        self, results: Path, stages: Iterable[Stage], on_saved: Callable[[], None]
    ) -> None:
        self._paths = {stage: results / CSV_OF_STAGE[stage] for stage in stages}
        self._rows: dict[Stage, dict[Key, Row]] = {
            stage: {row.key: row for row in read_rows(path)}
            for stage, path in self._paths.items()
        }
        self._changed: set[Stage] = set()
        self._on_saved = on_saved
        self._saved_at = time.monotonic()

    def rows(self, stage: Stage) -> Collection[Row]:
        """The rows of a stage."""
        return self._rows[stage].values()

    def count(self, graph: str | None) -> int:
        """How many rows there are of a graph, or of all."""
        return sum(
            graph in (None, key.graph) for rows in self._rows.values() for key in rows
        )

    def add(self, stage: Stage, rows: Iterable[Row]) -> None:
        """Adds rows, and writes all of them every few seconds."""
        self._rows[stage].update({row.key: row for row in rows})
        self._changed.add(stage)
        if time.monotonic() - self._saved_at >= _SAVE_EVERY_S:
            self.save()
            self._on_saved()

    def save(self) -> None:
        """Writes the files whose rows have changed."""
        for stage in self._changed:
            write_rows(self._paths[stage], self.rows(stage))
        self._changed.clear()
        self._saved_at = time.monotonic()
