"""The result of a comparison, in the forms people use."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tempergat.base import write_text
from tempergat.study.comparison.verdict import best_method, verdict
from tempergat.study.engine import Run
from tempergat.study.report import (
    Table,
    as_csv,
    as_html,
    as_json,
    as_latex,
    as_markdown,
    as_rows,
    as_text,
    result_figure,
    result_table,
    write_result,
)
from tempergat.study.results import DatasetResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, repr=False)
class Comparison:
    """Methods compared on one graph. Scores are in percent.

    Attributes:
        result: Each method's scores, and its comparison with its baseline.
        runs: Every run, failed ones included.
        baseline: The method all others are compared with; None where each variant is
            compared with its backbone.
        recipe: Name of the recipe.
        device: The device of the runs.
        complete: Whether all runs that were asked for are there.
        notes: Sentences on what the scores depend on, shown below the table.
        store: The file that keeps the runs; None where they were not kept.
        files: The files that were written: CSV, Markdown, LaTeX, SVG, PNG.
    """

    result: DatasetResult
    runs: list[Run]
    baseline: str | None
    recipe: str
    device: str
    complete: bool
    notes: tuple[str, ...] = ()
    store: Path | None = None
    files: tuple[Path, ...] = ()

    @property
    def table(self) -> list[dict[str, Any]]:
        """One row of plain values per method, numbers in full."""
        return as_rows(self.result)

    @property
    def best(self) -> str | None:
        """The method with the highest mean; None where no run finished."""
        return best_method(self.result)

    @property
    def verdict(self) -> str:
        """What the comparison shows, in one sentence."""
        return verdict(self.result)

    @property
    def text_table(self) -> Table:
        """The table as people read it."""
        return result_table(self.result, self.notes)

    @property
    def facts(self) -> dict[str, Any]:
        """Everything as plain JSON values."""
        return {
            **as_json(self.result),
            "fingerprints": {
                str(run.split): run.fingerprint
                for run in sorted(self.runs, key=lambda run: run.split)
            },
            "recipe": self.recipe,
            "device": self.device,
            "complete": self.complete,
            "store": None if self.store is None else str(self.store),
            "files": [str(path) for path in self.files],
            "best": self.best,
            "verdict": self.verdict,
            "notes": list(self.notes),
        }

    def to_csv(self, path: str | Path | None = None) -> str:
        """The table as CSV, numbers in full.

        Args:
            path: Also write it to this file.
        """
        return _written(as_csv(self.result), path)

    def to_markdown(self, path: str | Path | None = None) -> str:
        """The table as Markdown; `path` as for `to_csv`."""
        return _written(as_markdown(self.text_table), path)

    def to_latex(self, path: str | Path | None = None) -> str:
        """The table as LaTeX with booktabs; `path` as for `to_csv`."""
        return _written(as_latex(self.text_table), path)

    def to_json(self, path: str | Path | None = None) -> str:
        """Everything as JSON; `path` as for `to_csv`."""
        return _written(json.dumps(self.facts, indent=1, allow_nan=False), path)

    def plot(self) -> "Figure":
        """A figure of every run, with means and intervals."""
        return result_figure(self.result, self.baseline)

    def written_to(self, folder: Path) -> "Comparison":
        """Write the tables and the figure; returns the comparison with their paths."""
        paths = write_result(self.result, folder, self.baseline, self.notes)
        return replace(self, files=tuple(paths))

    def __repr__(self) -> str:
        return f"{as_text(self.text_table)}\n{self.verdict}"

    def _repr_html_(self) -> str:
        return as_html(self.text_table)


def _written(text: str, path: str | Path | None) -> str:
    if path is not None:
        write_text(Path(path), text)
    return text
