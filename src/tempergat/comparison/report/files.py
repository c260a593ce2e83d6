"""The files of a result: tables and figures in a folder."""

import warnings
from collections.abc import Sequence
from pathlib import Path

from tempergat.base import figures as base_figures
from tempergat.base import file_stem, write_into
from tempergat.comparison.report.figures import result_figure
from tempergat.comparison.report.formats import as_latex, as_markdown
from tempergat.comparison.report.records import as_csv
from tempergat.comparison.report.tables import result_table
from tempergat.comparison.results import DatasetResult


def write_result(
    result: DatasetResult,
    folder: Path,
    baseline: str | None = None,
    notes: Sequence[str] = (),
    name: str | None = None,
) -> list[Path]:
    """Write a result's tables and its figure.

    Args:
        result: The result of one dataset.
        folder: Where to write; made when missing.
        baseline: The method whose mean is drawn across the figure.
        notes: Further sentences below the tables.
        name: Name of the files without suffix; the dataset's when left out.

    Returns:
        The files: CSV, Markdown, LaTeX, SVG, PNG.
    """
    table = result_table(result, notes)
    stem = folder / (name or file_stem(result.dataset))
    paths = []
    for suffix, text in (
        (".csv", as_csv(result)),
        (".md", as_markdown(table)),
        (".tex", as_latex(table)),
    ):
        paths.append(write_into(folder, f"{stem.name}{suffix}", text))
    return [*paths, *write_figure(result, stem, baseline)]


def write_figure(
    result: DatasetResult, stem: Path, baseline: str | None = None
) -> tuple[Path, Path]:
    """Draw every run of a result, with means and intervals, as SVG and PNG."""
    with warnings.catch_warnings():
        # Letters that the font lacks are drawn as boxes.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        return base_figures.save_figure(result_figure(result, baseline), stem)
