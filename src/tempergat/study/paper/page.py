"""docs/reproduction.md: our runs beside the paper's tables, claim by claim."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tempergat.base import UserError, write_into
from tempergat.base import figures as base_figures
from tempergat.stats import ALPHA
from tempergat.study.engine import read_runs
from tempergat.study.paper import figures, summary
from tempergat.study.paper.claims import Claim, DatasetReproduction, reproduce_dataset
from tempergat.study.paper.dataset_section import dataset_section
from tempergat.study.paper.numbers import HETEROGENEOUS, HOMOGENEOUS, read_paper
from tempergat.study.report import (
    as_json,
    filled,
    p_value,
    percent,
    result_figure,
    signed,
)

_SECOND_PAGE = "heterogeneous.md"


@dataclass(frozen=True)
class Reproduction:
    """What `reproduce_homogeneous` found and wrote.

    Attributes:
        datasets: The datasets of the paper's table that have runs.
        not_run: The datasets without runs.
        page: The page.
    """

    datasets: tuple[DatasetReproduction, ...]
    not_run: tuple[str, ...]
    page: Path

    @property
    def claims(self) -> tuple[Claim, ...]:
        """All claims of all datasets."""
        return tuple(claim for dataset in self.datasets for claim in dataset.claims)


def reproduce_homogeneous(
    results: Path, docs: Path, further: str = "", further_answer: str = ""
) -> Reproduction:
    """Write docs/reproduction.md from results/homogeneous.csv and the paper's table.

    Args:
        results: The project's folder of results.
        docs: Where the page goes; its tables and figures into `figures/` below it.
        further: Sections to put after those about the gains, in Markdown.
        further_answer: What they say, as a sentence without its full stop.

    Raises:
        UserError: A file is missing, or holds no run on a dataset of the table.
    """
    page = docs / "reproduction.md"
    return _reproduce(
        "homogeneous", HOMOGENEOUS, results, page, further, further_answer
    )


def reproduce_heterogeneous(results: Path, docs: Path) -> Reproduction:
    """Write docs/heterogeneous.md, as `reproduce_homogeneous` writes its page."""
    return _reproduce("heterogeneous", HETEROGENEOUS, results, docs / _SECOND_PAGE)


def _reproduce(
    table: str,
    names: Sequence[str],
    results: Path,
    page: Path,
    further: str = "",
    further_answer: str = "",
) -> Reproduction:
    paper = read_paper()
    source = results / f"{table}.csv"
    remedy = f"train some with `tempergat reproduce {table} --run`"
    if not source.exists():
        raise UserError(
            f"there is no {source} with runs; {remedy}, or write those of a store with "
            f"`tempergat reproduce export STORE --to {source}`"
        )
    runs = read_runs(source)
    by_dataset = {
        dataset: [run for run in runs if run.dataset == dataset] for dataset in names
    }
    found = tuple(
        reproduce_dataset(of_one, paper[dataset])
        for dataset, of_one in by_dataset.items()
        if of_one
    )
    if not found:
        raise UserError(f"{source} has no run on {', '.join(names)}; {remedy}")
    for dataset in found:
        stem = page.parent / "figures" / f"scores-{dataset.result.dataset}"
        base_figures.save_drawing(result_figure(dataset.result), stem)
    report = Reproduction(
        found,
        tuple(dataset for dataset, of_one in by_dataset.items() if not of_one),
        page,
    )
    figure = f"{table}-gains"
    figures.pooled_figure(found, page.parent / "figures" / figure)
    answer = summary.answer(found, further_answer)
    picture = f"![Gains pooled over variants](figures/{figure}.svg)"
    text = _page(report, table, f"{answer}\n{picture}\n", further)
    write_into(page.parent, page.name, text)
    return report


def reproduction_json(report: Reproduction) -> dict[str, Any]:
    """The report as plain JSON values, scores in percent."""
    return {
        "datasets": [
            {
                **as_json(dataset.result),
                "device": dataset.device,
                "versions": dataset.versions,
                "beside_the_paper": [
                    {
                        "method": cell.paper.method,
                        "paper_mean": cell.paper.mean,
                        "paper_std": cell.paper.std,
                        "paper_runs": cell.paper.runs,
                        **({} if cell.test is None else asdict(cell.test)),
                        "p_holm": cell.p_holm,
                    }
                    for cell in dataset.cells
                ],
            }
            for dataset in report.datasets
        ],
        "claims": [
            {
                "dataset": claim.dataset,
                "method": claim.method,
                "backbone": claim.backbone,
                "paper_difference": claim.paper_difference,
                "our_difference": claim.ours.difference,
                "t_p_holm": claim.ours.t_p_holm,
                "verdict": claim.ours.verdict,
                "outcome": claim.outcome,
                "rule": rule,
            }
            for dataset in report.datasets
            for rule, claims in dataset.claims_by_rule.items()
            for claim in claims
        ],
        "gains_beside_the_paper": [
            {"dataset": dataset.result.dataset, **asdict(gain)}
            for dataset in report.datasets
            for gain in dataset.gains.values()
        ],
        "joint": [
            {"dataset": dataset.result.dataset, **asdict(test)}
            for dataset in report.datasets
            for test in dataset.joint
        ],
        "not_run": list(report.not_run),
        "page": str(report.page),
    }


def _page(report: Reproduction, table: str, answer: str, further: str) -> str:
    number = "first" if table == "homogeneous" else "second"
    datasets = report.datasets
    parts = [
        f"# The paper's {number} table, run again\n\n"
        + answer
        + "\nThe average gain over the variants, with its 95 % interval over seeds.\n"
        + f"\n`tempergat reproduce {table}` makes this page from results/. Scores are "
        "test scores in percent: mean ± standard deviation over runs whose seeds were "
        "fixed beforehand, at the first epoch of best validation accuracy where "
        "nothing else is said. The settings are those of src/tempergat/recipes/paper/. "
        "Values that the paper does not state are marked there. Weight decay, dropout "
        "on attention and normalisation were chosen on the baselines "
        "(docs/calibration.md); the decay of theta and gates, the gate on the output "
        "layer and the selection rule were not calibrated.\n",
        summary.by_rule(datasets),
        summary.pooled(datasets),
        further,
        summary.joint(datasets),
        summary.agreement(datasets),
        _what_does_not_hold(report),
        *(dataset_section(dataset) for dataset in datasets),
    ]
    if report.not_run:
        parts.append(_not_run(report, table))
    return filled("\n".join(part for part in parts if part))


def _not_run(report: Reproduction, table: str) -> str:
    text = (
        "## Not run yet\n\n"
        f"{', '.join(report.not_run)}: no runs in results/{table}.csv. They can be "
        f"trained with `tempergat reproduce {table} --run`; `--plan` says where the "
        "files come from, and the disk, memory and time it takes.\n"
    )
    if table == "homogeneous":
        text += (
            f"\nThe paper's second table ({', '.join(HETEROGENEOUS)}) can be trained "
            "with `tempergat reproduce heterogeneous --run`, and was not. The files of "
            "all of these datasets have to be downloaded, and the machine these pages "
            "were made on has no access to them. What was run is the same code from "
            "the archive to the page, on small archives in each dataset's layout "
            "(tests/study/reproduce/test_all_datasets.py).\n"
        )
    return text


def _what_does_not_hold(report: Reproduction) -> str:
    lines = []
    for claim in report.claims:
        ours = signed(claim.ours.difference)
        beginning = (
            f"- {claim.dataset}, {claim.method} over {claim.backbone}: the paper "
            f"{signed(claim.paper_difference)}, ours {ours}"
        )
        if claim.outcome == "reversed":
            lines.append(
                f"{beginning}: worse, not better (p {p_value(claim.ours.t_p_holm)}).\n"
            )
        elif claim.outcome is None and claim.ours.verdict == "better":
            lines.append(
                f"{beginning}: better here, where the paper shows no gain "
                f"(p {p_value(claim.ours.t_p_holm)}).\n"
            )
    for dataset in report.datasets:
        lines += [
            f"- {cell.paper.dataset}, {cell.paper.method}: ours "
            f"{percent(cell.ours.summary.mean)}, the paper {percent(cell.paper.mean)}, "
            f"{signed(cell.test.in_standard_errors, 1)} standard errors away.\n"
            for cell in dataset.cells
            if cell.test is not None and cell.p_holm is not None and cell.p_holm < ALPHA
        ]
    body = "".join(lines) or "No gain is reversed, and every cell agrees.\n"
    return (
        "## What differs from the paper\n\n"
        "Gains that are reversed, gains where the paper shows none, and cells that do "
        f"not agree; the tables below have all others.\n\n{body}"
    )
