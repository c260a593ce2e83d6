"""docs/ranks.md: average ranks, and variants below their backbone."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tempergat.base import write_into
from tempergat.stats import ALPHA, RankTable
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

# A critical difference of more than this share of the widest one tells little.
_BLUNT = 0.8
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
    """
    paper = read_paper()
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
    write_into(docs, report.page.name, _page(report))
    return report


def ranks_json(report: RanksReport) -> dict[str, Any]:
    """The report as plain JSON values."""
    return {
        "figures": [
            {
                "name": figure.name,
                "title": figure.title,
                **asdict(figure.table),
                "paths": [str(figure.path)],
            }
            for figure in report.figures
        ],
        "below_backbone": [asdict(cell) for cell in report.below],
        "compared_cells": report.compared,
        "not_drawn": list(report.not_drawn),
        "page": str(report.page),
    }


def _page(report: RanksReport) -> str:
    first = report.figures[0]
    parts = [
        f"# Average ranks\n\n{_answer(report)}\n"
        f"![{first.title}](figures/{first.path.name})\n\n"
        "`tempergat reproduce ranks` makes this page from results/. Rank 1 is best. "
        "Average ranks that are closer than the critical difference (Nemenyi, 5 %) do "
        "not show which of two methods is better.\n"
    ]
    parts += [_figure_section(figure, figure is first) for figure in report.figures]
    if report.not_drawn:
        parts.append(
            "## Not drawn\n\n" + "".join(f"- {line}\n" for line in report.not_drawn)
        )
    parts.append(_below_section(report))
    return filled("\n".join(parts))


def _answer(report: RanksReport) -> str:
    """The answer in three sentences."""
    both, *others = (figure.table for figure in report.figures)
    best = next(iter(both.average))
    worse = _shown_worse(both, best)
    first = (
        f"Over the {len(both.datasets)} datasets of the paper's two tables, its own "
        f"average ranks show {best} to be better than {' and '.join(worse) or 'none'}."
    )
    fewest = min(others, key=lambda table: len(table.datasets))
    second = (
        f"Fewer datasets show less: with {len(fewest.datasets)} the critical "
        f"difference is {fewest.critical_difference:.2f}, with {len(both.datasets)} it "
        f"is {both.critical_difference:.2f}."
    )
    third = (
        f"In {len(report.below)} of {report.compared} cells of the paper's tables a "
        "variant lies below its backbone."
    )
    return f"{first} {second} {third}\n"


def _shown_worse(table: RankTable, better: str) -> list[str]:
    """The methods whose average rank is a critical difference or more behind."""
    return [
        method
        for method, rank in table.average.items()
        if rank - table.average[better] > table.critical_difference
    ]


def _figure_section(figure: RankFigure, is_at_the_top: bool) -> str:
    table = figure.table
    datasets = ", ".join(table.datasets)
    rows = [
        [
            method,
            f"{rank:.2f}",
            *(f"{table.ranks[dataset][method]:g}" for dataset in table.datasets),
        ]
        for method, rank in table.average.items()
    ]
    picture = f"![{figure.title}](figures/{figure.path.name})\n\n"
    if is_at_the_top:
        picture = ""
    return (
        f"## {figure.title}\n\n{picture}"
        f"Datasets: {datasets}. Friedman p {p_value(table.friedman_p)}; critical "
        f"difference {table.critical_difference:.2f}. {_shown(table)}\n\n"
        + markdown_rows(["method", "average", *table.datasets], rows)
    )


def _shown(table: RankTable) -> str:
    """Which methods the average ranks tell apart, in words."""
    methods = list(table.average)
    widest = len(methods) - 1
    parts = []
    for better in methods:
        worse = _shown_worse(table, better)
        if worse:
            parts.append(
                f"{better} ({table.average[better]:.2f}) than {', '.join(worse)}"
            )
    text = (
        f"Shown to be better: {'; '.join(parts)}."
        if parts
        else "No method is shown to be better than another."
    )
    if table.critical_difference > _BLUNT * widest:
        text += (
            f" Average ranks of {len(methods)} methods differ by at most {widest}, so "
            f"with {len(table.datasets)} datasets this comparison tells next to "
            "nothing."
        )
    return text


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
