"""The paper's average-rank figures, with the bar that says what they show."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tempergat.base import figures as base_figures
from tempergat.base import files as atomic
from tempergat.stats import RankTable, average_ranks, welch
from tempergat.study.engine import read_runs
from tempergat.study.paper.numbers import (
    BACKBONE_OF,
    HETEROGENEOUS,
    HOMOGENEOUS,
    PAPER_METHODS,
    PaperCell,
    read_paper,
)
from tempergat.study.report import figures as plots
from tempergat.study.report import markdown_rows, p_value, percent, signed
from tempergat.study.results import dataset_result

_TABLES = {"homogeneous": HOMOGENEOUS, "heterogeneous": HETEROGENEOUS}

_PAPER_SENTENCES = (
    (
        "Abstract",
        "the proposed variants consistently improve the corresponding graph "
        "attention backbones",
    ),
    (
        "Introduction",
        "stronger empirical performance than the corresponding GAT and "
        "GATv2 backbones across the evaluated benchmarks",
    ),
)


@dataclass(frozen=True)
class BelowBackbone:
    """A cell of the paper's tables where a variant's mean is under its backbone's.

    Attributes:
        difference: Variant minus backbone, in percent.
        in_standard_errors: The same over its standard error (runs taken as unpaired,
            the paper giving means and standard deviations only).
        p: Welch's, two-sided and uncorrected.
    """

    dataset: str
    method: str
    backbone: str
    difference: float
    in_standard_errors: float | None
    p: float | None


@dataclass(frozen=True)
class RankFigure:
    """One figure of average ranks and the files it was written to."""

    name: str
    title: str
    table: RankTable
    paths: tuple[Path, Path]


@dataclass(frozen=True)
class RanksReport:
    """What `reproduce_ranks` found and wrote."""

    figures: tuple[RankFigure, ...]
    below: tuple[BelowBackbone, ...]
    compared: int
    not_drawn: tuple[str, ...]
    page: Path


def below_backbone(
    paper: Mapping[str, Mapping[str, PaperCell]],
) -> list[BelowBackbone]:
    """Every cell of the paper's where a variant stands below its backbone."""
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


def reproduce_ranks(results: Path, docs: Path) -> RanksReport:
    """Draw the average-rank figures and write docs/ranks.md.

    Args:
        results: The project's folder of results.
        docs: Where the page goes, its figures into `figures/` below it.
    """
    paper = read_paper(results)
    figures: list[RankFigure] = []
    not_drawn: list[str] = []
    for kind, datasets in _TABLES.items():
        means = {
            dataset: {method: cell.mean for method, cell in paper[dataset].items()}
            for dataset in datasets
            if dataset in paper
        }
        figures.append(_draw(f"ranks-paper-{kind}", f"The paper, {kind}", means, docs))
        ours, reason = _our_means(results / f"{kind}.csv", datasets)
        if reason:
            not_drawn.append(f"Ours, {kind}: {reason}.")
        else:
            figures.append(_draw(f"ranks-ours-{kind}", f"Ours, {kind}", ours, docs))
    below = tuple(below_backbone(paper))
    compared = sum(
        method in paper.get(dataset, {})
        for dataset in (*HOMOGENEOUS, *HETEROGENEOUS)
        for method in BACKBONE_OF
    )
    report = RanksReport(
        tuple(figures), below, compared, tuple(not_drawn), docs / "ranks.md"
    )
    atomic.write_text(report.page, _page(report))
    return report


def ranks_json(report: RanksReport) -> dict[str, Any]:
    """The report as plain JSON values."""
    return {
        "figures": [
            {
                "name": figure.name,
                "title": figure.title,
                **asdict(figure.table),
                "paths": [str(path) for path in figure.paths],
            }
            for figure in report.figures
        ],
        "below_backbone": [asdict(cell) for cell in report.below],
        "compared_cells": report.compared,
        "not_drawn": list(report.not_drawn),
        "page": str(report.page),
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
        base_figures.save_figure(figure, docs / "figures" / name),
    )


def _page(report: RanksReport) -> str:
    parts = [
        "# Average ranks\n\n"
        "Made by `tempergat reproduce ranks` from results/; edit that, not this page.\n"
        "Rank 1 is best. Two methods whose average ranks are closer than the critical\n"
        "difference (Nemenyi, 5 %) are not told apart by their ranks.\n"
    ]
    parts += [_figure_section(figure) for figure in report.figures]
    if report.not_drawn:
        parts.append(
            "## Not drawn\n\n" + "".join(f"- {line}\n" for line in report.not_drawn)
        )
    parts.append(_below_section(report))
    return "\n".join(parts)


def _figure_section(figure: RankFigure) -> str:
    table = figure.table
    datasets = ", ".join(table.datasets)
    best = next(iter(table.average))
    apart = [
        method
        for method, rank in table.average.items()
        if rank - table.average[best] > table.critical_difference
    ]
    verdict = (
        f"Told apart from the best, {best}: {', '.join(apart)}."
        if apart
        else f"No method is told apart from the best, {best}."
    )
    rows = [
        [
            method,
            f"{rank:.2f}",
            *(f"{table.ranks[dataset][method]:g}" for dataset in table.datasets),
        ]
        for method, rank in table.average.items()
    ]
    return (
        f"## {figure.title}\n\n"
        f"![{figure.title}](figures/{figure.paths[0].name})\n\n"
        f"Datasets: {datasets}. Friedman p {p_value(table.friedman_p)}; critical "
        f"difference {table.critical_difference:.2f}. {verdict}\n\n"
        + markdown_rows(["method", "average", *table.datasets], rows)
    )


def _below_section(report: RanksReport) -> str:
    clear = sum(cell.p is not None and cell.p < 0.05 for cell in report.below)
    sentences = "".join(
        f"- {place}: “{sentence}”\n" for place, sentence in _PAPER_SENTENCES
    )
    rows = [
        [
            cell.dataset,
            cell.method,
            cell.backbone,
            signed(cell.difference),
            signed(cell.in_standard_errors, 1),
            p_value(cell.p),
        ]
        for cell in report.below
    ]
    share = percent(100 * len(report.below) / report.compared, 0)
    return (
        "## Where a variant stands below its backbone in the paper's own tables\n\n"
        f"The paper says:\n\n{sentences}\n"
        f"Its tables have {report.compared} cells of a variant beside its backbone.\n"
        f"In {len(report.below)} of them ({share} %) the variant's mean is the lower "
        f"one; in {clear} of these\nthe two are told apart (Welch's test on the "
        "printed means and\ndeviations, uncorrected p below 0.05).\n\n"
        + markdown_rows(
            ["dataset", "variant", "backbone", "difference", "standard errors", "p"],
            rows,
        )
    )
