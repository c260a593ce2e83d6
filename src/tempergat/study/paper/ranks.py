"""Average ranks with their critical difference, and variants below their backbone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tempergat.base import figures as base_figures
from tempergat.stats import RankTable, average_ranks, welch
from tempergat.study.engine import read_runs
from tempergat.study.paper.numbers import (
    BACKBONE_OF,
    HETEROGENEOUS,
    HOMOGENEOUS,
    PAPER_METHODS,
    PaperCell,
)
from tempergat.study.report import figures as plots
from tempergat.study.results import dataset_result

_TABLES = {"homogeneous": HOMOGENEOUS, "heterogeneous": HETEROGENEOUS}


@dataclass(frozen=True)
class BelowBackbone:
    """A cell of the paper's tables where a variant's mean is below its backbone's.

    Attributes:
        difference: Variant minus backbone, in percent.
        in_standard_errors: The difference over its standard error. Runs count as
            unpaired, because the paper gives only means and standard deviations.
        p: p of Welch's test, two-sided and uncorrected.
    """

    dataset: str
    method: str
    backbone: str
    difference: float
    in_standard_errors: float | None
    p: float | None


@dataclass(frozen=True)
class RankFigure:
    """One figure of average ranks and the file it was written to."""

    name: str
    title: str
    table: RankTable
    path: Path


def below_backbone(
    paper: Mapping[str, Mapping[str, PaperCell]],
) -> list[BelowBackbone]:
    """Every cell of the paper's tables where a variant is below its backbone."""
    found = []
    for dataset in (*HOMOGENEOUS, *HETEROGENEOUS):
        cells = paper.get(dataset, {})
        for method, backbone in BACKBONE_OF.items():
            if method not in cells or cells[method].mean >= cells[backbone].mean:
                continue
            test = welch(_moments(cells[method]), _moments(cells[backbone]))
            found.append(
                BelowBackbone(
                    dataset,
                    method,
                    backbone,
                    test.difference,
                    test.in_standard_errors,
                    test.p,
                )
            )
    return found


def rank_figures(
    paper: Mapping[str, Mapping[str, PaperCell]], results: Path, docs: Path
) -> tuple[list[RankFigure], list[str]]:
    """Draw the average ranks of the paper's tables and of our runs.

    Args:
        paper: The paper's cells by dataset and method.
        results: The project's folder of results.
        docs: The figures go into `figures/` below it.

    Returns:
        The figures, and why others could not be drawn.
    """
    not_drawn: list[str] = []
    every = _paper_means(paper, (*HOMOGENEOUS, *HETEROGENEOUS))
    figures = [_draw("ranks-paper-all", "The paper, both tables", every, docs)]
    for kind, datasets in _TABLES.items():
        means = _paper_means(paper, datasets)
        figures.append(_draw(f"ranks-paper-{kind}", f"The paper, {kind}", means, docs))
        ours, reason = _our_means(results / f"{kind}.csv", datasets)
        if reason:
            not_drawn.append(f"Ours, {kind}: {reason}.")
        else:
            figures.append(_draw(f"ranks-ours-{kind}", f"Ours, {kind}", ours, docs))
    return figures, not_drawn


def _paper_means(
    paper: Mapping[str, Mapping[str, PaperCell]], datasets: Sequence[str]
) -> dict[str, dict[str, float]]:
    return {
        dataset: {method: cell.mean for method, cell in paper[dataset].items()}
        for dataset in datasets
        if dataset in paper
    }


def _moments(cell: PaperCell) -> tuple[float, float, int]:
    return cell.mean, cell.std, cell.runs


def _our_means(
    path: Path, datasets: Sequence[str]
) -> tuple[dict[str, dict[str, float]], str]:
    """Our mean scores of the paper's methods, or why they cannot be ranked."""
    if not path.exists():
        return {}, f"no {path.name} yet"
    runs = read_runs(path)
    means: dict[str, dict[str, float]] = {}
    for dataset in datasets:
        found = dataset_result(
            [run for run in runs if run.dataset == dataset], PAPER_METHODS, BACKBONE_OF
        )
        scores = {
            r.method: r.summary.mean
            for r in found.results
            if r.summary.mean is not None
        }
        if len(scores) == len(PAPER_METHODS):
            means[dataset] = scores
    if len(means) < 2:
        return {}, f"{len(means)} dataset with all methods; average ranks need two"
    return means, ""


def _draw(
    name: str, title: str, means: Mapping[str, Mapping[str, float]], docs: Path
) -> RankFigure:
    table = average_ranks(means)
    full_title = f"{title}: average rank on {len(table.datasets)} datasets"
    figure = plots.ranks_figure(full_title, table)
    return RankFigure(
        name,
        full_title,
        table,
        base_figures.save_drawing(figure, docs / "figures" / name),
    )
