"""docs/ranks.md: average ranks, and variants below their backbone."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tempergat.base import write_text
from tempergat.stats import ALPHA
from tempergat.study.paper.numbers import (
    BACKBONE_OF,
    HETEROGENEOUS,
    HOMOGENEOUS,
    read_paper,
)
from tempergat.study.paper.ranks import (
    BelowBackbone,
    RankFigure,
    below_backbone,
    rank_figures,
)
from tempergat.study.report import filled, markdown_rows, p_value, percent, signed

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
class RanksReport:
    """What `reproduce_ranks` found and wrote."""

    figures: tuple[RankFigure, ...]
    below: tuple[BelowBackbone, ...]
    compared: int
    not_drawn: tuple[str, ...]
    page: Path


def reproduce_ranks(results: Path, docs: Path) -> RanksReport:
    """Draw the average-rank figures and write docs/ranks.md.

    Args:
        results: The project's folder of results.
        docs: Where the page goes, its figures into `figures/` below it.

    Raises:
        UserError: The paper's table is missing or broken.
    """
    paper = read_paper(results)
    figures, not_drawn = rank_figures(paper, results, docs)
    compared = sum(
        method in paper.get(dataset, {})
        for dataset in (*HOMOGENEOUS, *HETEROGENEOUS)
        for method in BACKBONE_OF
    )
    report = RanksReport(
        tuple(figures),
        tuple(below_backbone(paper)),
        compared,
        tuple(not_drawn),
        docs / "ranks.md",
    )
    write_text(report.page, _page(report))
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


def _page(report: RanksReport) -> str:
    parts = [
        "# Average ranks\n\n"
        "This page is made by `tempergat reproduce ranks` from results/; do not edit "
        "it by hand. Rank 1 is best. Average ranks that are closer than the critical "
        "difference (Nemenyi, 5 %) do not show which of two methods is better.\n"
    ]
    parts += [_figure_section(figure) for figure in report.figures]
    if report.not_drawn:
        parts.append(
            "## Not drawn\n\n" + "".join(f"- {line}\n" for line in report.not_drawn)
        )
    parts.append(_below_section(report))
    return filled("\n".join(parts))


def _figure_section(figure: RankFigure) -> str:
    table = figure.table
    datasets = ", ".join(table.datasets)
    best = next(iter(table.average))
    worse = [
        method
        for method, rank in table.average.items()
        if rank - table.average[best] > table.critical_difference
    ]
    verdict = (
        f"Shown to be worse than the best method, {best}: {', '.join(worse)}."
        if worse
        else f"No method is shown to be worse than the best one, {best}."
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
    clear = sum(cell.p is not None and cell.p < ALPHA for cell in report.below)
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
        "## Variants below their backbone in the paper's own tables\n\n"
        f"The paper says:\n\n{sentences}\n"
        f"Its tables compare {report.compared} cells of a variant with its backbone. "
        f"In {len(report.below)} of them ({share} %) the variant's mean is the lower "
        f"one; in {clear} of these the difference is clear (Welch's test on the "
        "printed means and deviations, uncorrected p below 0.05).\n\n"
        + markdown_rows(
            ["dataset", "variant", "backbone", "difference", "standard errors", "p"],
            rows,
        )
    )
