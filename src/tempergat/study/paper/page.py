"""docs/reproduction.md: our runs beside the paper's tables, claim by claim."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tempergat.base import UserError, write_text
from tempergat.stats import ALPHA
from tempergat.study.engine import read_runs
from tempergat.study.paper.claims import Claim, DatasetReproduction, reproduce_dataset
from tempergat.study.paper.numbers import HETEROGENEOUS, HOMOGENEOUS, read_paper
from tempergat.study.report import (
    as_json,
    filled,
    markdown_rows,
    mean_and_std,
    p_value,
    percent,
    signed,
    write_figure,
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


def reproduce_homogeneous(results: Path, docs: Path) -> Reproduction:
    """Write docs/reproduction.md from results/homogeneous.csv and the paper's table.

    Args:
        results: The project's folder of results.
        docs: Where the page goes; its tables and figures into `figures/` below it.

    Raises:
        UserError: A file is missing, or holds no run on a dataset of the table.
    """
    return _reproduce("homogeneous", HOMOGENEOUS, results, docs / "reproduction.md")


def reproduce_heterogeneous(results: Path, docs: Path) -> Reproduction:
    """Write docs/heterogeneous.md, as `reproduce_homogeneous` writes its page."""
    return _reproduce("heterogeneous", HETEROGENEOUS, results, docs / _SECOND_PAGE)


def _reproduce(
    table: str, names: Sequence[str], results: Path, page: Path
) -> Reproduction:
    paper = read_paper(results)
    source = results / f"{table}.csv"
    remedy = f"train some with `tempergat reproduce {table} --run`"
    if not source.exists():
        raise UserError(
            f"there is no {source} with runs; {remedy}, or write those of a store with "
            "`tempergat reproduce export`"
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
        write_figure(dataset.result, stem)
    report = Reproduction(
        found,
        tuple(dataset for dataset, of_one in by_dataset.items() if not of_one),
        page,
    )
    write_text(report.page, _page(report, table))
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
            }
            for claim in report.claims
        ],
        "not_run": list(report.not_run),
        "page": str(report.page),
    }


def _page(report: Reproduction, table: str) -> str:
    number = "first" if table == "homogeneous" else "second"
    parts = [
        f"# The paper's {number} table, run again\n\n"
        f"This page is made by `tempergat reproduce {table}` from results/; do not "
        "edit it by hand. Scores are test scores in percent at the first epoch of best "
        "validation accuracy: mean ± standard deviation over runs whose seeds were "
        "fixed beforehand. The settings are those of src/tempergat/recipes/paper/. "
        "Values that the paper does not state are marked there; they were chosen on "
        "the baselines only.\n",
        _summary(report),
        _what_does_not_hold(report),
        *(_dataset_section(dataset) for dataset in report.datasets),
    ]
    if report.not_run:
        parts.append(_not_run(report, table))
    return filled("\n".join(parts))


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


def _summary(report: Reproduction) -> str:
    rows = []
    for dataset in report.datasets:
        outcomes = [claim.outcome for claim in dataset.claims]
        gains = [outcome for outcome in outcomes if outcome is not None]
        agree = sum(
            cell.p_holm is not None and cell.p_holm >= ALPHA for cell in dataset.cells
        )
        rows.append(
            [
                dataset.result.dataset,
                f"{agree} of {len(dataset.cells)}",
                str(len(gains)),
                *(
                    str(gains.count(outcome))
                    for outcome in ("holds", "within noise", "reversed")
                ),
                str(sum(cell.ours.summary.failed for cell in dataset.cells)),
            ]
        )
    return (
        "## In short\n\n"
        + markdown_rows(
            [
                "dataset",
                "cells that agree with the paper's",
                "gains the paper shows",
                "hold",
                "within noise",
                "reversed",
                "failed runs",
            ],
            rows,
        )
        + "\nA cell agrees when Welch's test shows no difference between our mean and "
        "the paper's (5 %, Holm-corrected over the dataset's methods). A gain is a "
        "variant whose mean is above its backbone's in the paper. It holds when our "
        "paired seeds show it too (paired t-test, 5 %, Holm-corrected over the "
        "dataset's variants).\n"
    )


def _what_does_not_hold(report: Reproduction) -> str:
    lines = []
    for claim in report.claims:
        ours = signed(claim.ours.difference)
        beginning = (
            f"- {claim.dataset}, {claim.method} over {claim.backbone}: the paper "
            f"{signed(claim.paper_difference)}, ours {ours}"
        )
        if claim.outcome in ("within noise", "reversed", "too few runs"):
            is_reversed = claim.outcome == "reversed"
            outcome = "worse, not better" if is_reversed else claim.outcome
            lines.append(
                f"{beginning}: {outcome} (p {p_value(claim.ours.t_p_holm)}).\n"
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
    body = "".join(lines) or "Nothing: every gain holds and every cell agrees.\n"
    return f"## What differs from the paper\n\n{body}"


def _dataset_section(dataset: DatasetReproduction) -> str:
    result = dataset.result
    notes = [
        f"\n{r.method}: {r.summary.failed} of {r.summary.failed + r.summary.runs} runs "
        f"failed and are not in its mean ({'; '.join(r.failures)}).\n"
        for r in result.results
        if r.failures
    ]
    time_s = sum(r.time_s for r in result.results)
    return "\n".join(
        [
            f"## {result.dataset}\n\n"
            f"Trained on {dataset.device} with {dataset.versions}; {time_s:.0f} s of "
            "computing in total.\n",
            f"![Scores on {result.dataset}](figures/scores-{result.dataset}.svg)\n",
            "### Beside the paper\n\n" + _cells_table(dataset) + "".join(notes),
            "### Variants against their backbones\n\n" + _claims_table(dataset.claims),
            "### Under other selection rules\n\n" + _rules_table(dataset),
            "### What was learned\n\n" + _learned_table(dataset),
        ]
    )


def _cells_table(dataset: DatasetReproduction) -> str:
    rows = []
    for cell in dataset.cells:
        summary = cell.ours.summary
        differs = cell.p_holm is not None and cell.p_holm < ALPHA
        rows.append(
            [
                cell.paper.method,
                mean_and_std(cell.paper.mean, cell.paper.std),
                mean_and_std(summary.mean, summary.std),
                f"{summary.runs}",
                signed(None if cell.test is None else cell.test.difference),
                signed(None if cell.test is None else cell.test.in_standard_errors, 1),
                "-" if cell.p_holm is None else "no" if differs else "yes",
            ]
        )
    columns = ["method", "paper", "ours", "runs", "difference", "standard errors"]
    return markdown_rows([*columns, "agrees"], rows)


def _claims_table(claims: Sequence[Claim]) -> str:
    rows = []
    for claim in claims:
        ours = claim.ours
        interval = (
            "" if ours.low is None else f" ({signed(ours.low)} to {signed(ours.high)})"
        )
        rows.append(
            [
                claim.method,
                claim.backbone,
                signed(claim.paper_difference),
                signed(ours.difference) + interval,
                p_value(ours.t_p_holm),
                p_value(ours.wilcoxon_p_holm),
                signed(ours.effect_size),
                signed(ours.correlation),
                ours.verdict,
                claim.outcome or "the paper shows no gain",
            ]
        )
    columns = [
        "variant",
        "backbone",
        "paper",
        "ours (95 % interval)",
        "p",
        "p Wilcoxon",
    ]
    columns += ["d", "correlation of pairs", "verdict", "the paper's gain"]
    return markdown_rows(columns, rows)


def _rules_table(dataset: DatasetReproduction) -> str:
    rows = [
        [
            method,
            *(
                mean_and_std(rule[method].summary.mean, rule[method].summary.std)
                for rule in dataset.rules
            ),
        ]
        for method in dataset.result.methods
    ]
    return markdown_rows(["method", *(rule.selection for rule in dataset.rules)], rows)


def _learned_table(dataset: DatasetReproduction) -> str:
    rows = [
        [
            r.method,
            *(
                " ".join(f"{value:.2f}" for value in values) or "-"
                for values in (
                    r.selected.temperatures,
                    r.last.temperatures,
                    r.selected.gate_means,
                    r.last.gate_means,
                )
            ),
        ]
        for r in dataset.result.results
        if r.selected != r.selected.__class__()
    ]
    columns = ["temperatures, selected epoch", "last epoch"]
    columns += ["mean gates, selected epoch", "last epoch"]
    return "Means over runs, one value per layer.\n\n" + markdown_rows(
        ["method", *columns], rows
    )
