"""`tempergat reproduce theory`: the figures of docs/theory.md."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tempergat.base import replace_non_finite
from tempergat.study.reproduce import Job, Page, Stock, Workspace, Written
from tempergat.theory import (
    FULL,
    TABLE_NAMES,
    analyse,
    read_tables,
    verdicts,
    write_tables,
)
from tempergat.theory.figures import draw_figures

_FOLDER = "theory"


@dataclass(frozen=True)
class TheoryTables(Job):
    """The tables of the whole analysis, which are made together."""

    dataset: str = "the analysis of both theorems"
    file: str = f"{_FOLDER}/*.csv"

    def stock(self, workspace: Workspace) -> Stock:
        """What is there, and what is missing."""
        folder = workspace.results / _FOLDER
        present = sum((folder / f"{name}.csv").is_file() for name in TABLE_NAMES)
        return Stock(
            len(TABLE_NAMES),
            present,
            unit="tables",
            time_note="it took four and a half minutes on two cores",
        )

    def run(self, workspace: Workspace) -> str:
        """Make all tables."""
        tables = analyse(FULL).tables
        paths = write_tables(tables, workspace.results / _FOLDER)
        return f"wrote {len(paths)} tables to {workspace.results / _FOLDER}"


def theory_page() -> Page:
    """The page, whose text is written by hand and whose figures are drawn."""

    def jobs(workspace: Workspace) -> Iterator[Job]:
        yield TheoryTables()

    return Page(
        "theory",
        reads=(f"{_FOLDER}/*.csv",),
        writes=("figures/theory/*",),
        jobs=jobs,
        write=_write,
    )


def _write(results: Path, docs: Path) -> Written:
    tables = read_tables(results / _FOLDER)
    folder = docs / "figures" / "theory"
    paths = draw_figures(tables, folder)
    lines = verdicts(tables)
    facts = replace_non_finite(
        {"verdicts": lines, "figures": [str(path) for path in paths]}, str
    )
    return Written(folder, tuple(f"- {line}" for line in lines), facts)
