"""docs/when.md, made from the plan and the rows in results/when/."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tempergat.base import write_text
from tempergat.nn import BackboneName
from tempergat.stats import RankTable
from tempergat.study.report import filled, markdown_rows, p_value, signed
from tempergat.study.when.analysis import Across, ranks, regression
from tempergat.study.when.answer import answer, use_table
from tempergat.study.when.arms import ARMS
from tempergat.study.when.figures import gains_figure
from tempergat.study.when.findings import (
    ALL,
    HETEROPHILIC,
    HOMOPHILIC,
    REAL,
    Findings,
    find,
    own_path_claim,
)
from tempergat.study.when.graphs import grid
from tempergat.study.when.plan import load_plan
from tempergat.study.when.rows import CSV_OF_STAGE, read_rows

PAGE = "when.md"
FIGURE = "figures/when-gains"
_KINDS = {
    HETEROPHILIC: "Generated, homophily at or below chance",
    HOMOPHILIC: "Generated, homophily above chance",
    ALL: "All generated graphs",
    REAL: "Real graphs",
}
_REGRESSED = (
    ("residual", "plain"),
    ("post_gate", "plain"),
    ("post_gate", "residual"),
    ("post_gate_residual", "residual"),
    ("temperature", "plain"),
)


@dataclass(frozen=True)
class WhenReport:
    """What `reproduce_when` found and wrote."""

    findings: Findings
    sentences: tuple[str, ...]
    page: Path


def reproduce_when(results: Path, docs: Path) -> WhenReport:
    """Writes docs/when.md and its picture.

    Args:
        results: The project's folder of results.
        docs: Where the page goes.

    Raises:
        UserError: The plan or a table cannot be read.
    """
    plan = load_plan(results)
    findings = find(
        plan,
        read_rows(results / CSV_OF_STAGE["generated"]),
        read_rows(results / CSV_OF_STAGE["real"]),
    )
    points = grid(plan.generated)
    if any(findings.generated.values()):
        chance = 1.0 / plan.generated.classes
        gains_figure(findings.generated, points, chance, docs / FIGURE)
    write_text(docs / PAGE, page_text(findings))
    return WhenReport(findings, tuple(answer(findings)), docs / PAGE)


def when_json(report: WhenReport) -> dict[str, Any]:
    """The report as plain JSON values."""
    return {
        "answer": list(report.sentences),
        "tests": [
            {
                "graphs": kind,
                "backbone": backbone,
                "contrast": test.contrast.name,
                "difference": test.mean,
                "low": test.low,
                "high": test.high,
                "p_holm": test.p_holm,
                "verdict": test.verdict,
            }
            for (kind, backbone), tests in report.findings.tests.items()
            for test in tests
        ],
        "page": str(report.page),
    }


def page_text(findings: Findings) -> str:
    """The page as Markdown."""
    parts = [
        "# When does a gate, a residual or a temperature help?\n\n"
        + " ".join(answer(findings))
        + "\n"
    ]
    if any(findings.generated.values()):
        parts.append(f"![Gains over the plain backbone]({FIGURE}.svg)\n")
        parts.append(
            "Test accuracy minus that of the plain backbone on the generated graphs "
            "that differ in homophily alone; bars are 95 % intervals over seeds.\n"
        )
    if findings.tests:
        parts.append("## Use this when\n\n" + use_table(findings) + _USE_NOTE)
    parts.append(_what_was_run(findings))
    parts.append(_arms_section(findings))
    if findings.tests:
        parts.append(_claim_section(findings))
        parts += _contrast_sections(findings)
        parts += _rank_sections(findings)
        parts.append(_regression_section(findings))
    return filled("\n".join(parts))


_USE_NOTE = (
    '\nGains are means over graphs, in points. "Yes" and "no" need both '
    "backbones: better by more than the bound of the plan, or worse or within it "
    "(Holm-corrected tests below).\n"
)


def _what_was_run(findings: Findings) -> str:
    plan = findings.plan
    points = len(grid(plan.generated))
    real = len(plan.real.graphs)
    arms = len(plan.arms) * len(plan.backbones)
    generated_done = min(len(found) for found in findings.generated.values())
    real_done = min(len(found) for found in findings.real.values())
    devices = ", ".join(
        f"{count:,} on {device}" for device, count in sorted(findings.devices.items())
    )
    missing = ""
    if real_done < real:
        missing = (
            f"\nStill missing: {real - real_done} of {real} real graphs, so what is "
            "said here about generated graphs is not yet shown on real ones. "
            "`tempergat reproduce when --plan` lists what to run.\n"
        )
    if generated_done < points:
        missing += (
            f"\nStill missing: {points - generated_done} of {points} generated "
            "graphs.\n"
        )
    return (
        "## What was run\n\n"
        "This page is made by `tempergat reproduce when` from `results/when/`; the "
        "plan there was written before the first run. "
        f"{arms} arms; {generated_done} of {points} generated graphs "
        f"({plan.generated.nodes} nodes, {plan.generated.classes} classes, "
        f"{len(plan.generated.seeds)} seeds, one setting for all arms), on which "
        "homophily, degree, mu, sigma, rho and the label rate are varied one at a time "
        f"around two centres; {real_done} of {real} real graphs (a search of "
        f"{len(plan.real.search.changes())} settings x "
        f"{len(plan.real.search.seeds)} seeds for every arm, then "
        f"{len(plan.real.seeds)} fresh seeds or splits). "
        f"Reported runs: {devices or 'none'}; {findings.failed} failed.\n{missing}"
    )


def _arms_section(findings: Findings) -> str:
    rows = []
    for name in findings.plan.arms:
        counts = [
            str(findings.parameters.get((backbone, name), "-"))
            for backbone in findings.plan.backbones
        ]
        rows.append([name, ARMS[name].words, *counts])
    backbones = [f"parameters, {backbone}" for backbone in findings.plan.backbones]
    return (
        "## Arms\n\n"
        "The two control gates and the fixed norm exist in this study alone. "
        "Parameters are those of the model on a generated graph.\n\n"
        + markdown_rows(["arm", "what it adds", *backbones], rows)
    )


def _claim_section(findings: Findings) -> str:
    claim = own_path_claim(findings)
    lines = [
        f"- {words}: {'yes' if holds else 'no'}\n"
        for words, holds in claim.conditions.items()
    ]
    verdict = "supported" if claim.is_supported else "not supported"
    return (
        "## Is the gate a path for the target's own features?\n\n"
        "The plan's conditions, on generated graphs with homophily at or below "
        f"chance; the claim is {verdict}:\n\n" + "".join(lines)
    )


def _contrast_sections(findings: Findings) -> Iterator[str]:
    for kind, title in _KINDS.items():
        for backbone in findings.plan.backbones:
            tests = findings.tests.get((kind, backbone))
            if tests is None:
                continue
            yield (
                f"## {title}: {backbone}\n\n"
                f"{tests[0].graphs} graphs or families; p is Wilcoxon's over them, "
                'Holm-corrected. "On graphs" counts where the arm is better and '
                "worse by paired tests within a graph, Holm-corrected.\n\n"
                + markdown_rows(
                    ["contrast", "points", "95 % interval", "p", "on graphs", "shown"],
                    [_contrast_row(test) for test in tests],
                )
            )


def _contrast_row(test: Across) -> list[str]:
    return [
        test.contrast.name,
        signed(test.mean),
        f"{signed(test.low)} to {signed(test.high)}",
        p_value(test.p_holm),
        f"{test.better} better, {test.worse} worse of {test.tested}",
        test.verdict,
    ]


def _rank_sections(findings: Findings) -> Iterator[str]:
    stages = {"generated": findings.generated, "real": findings.real}
    for stage, of_backbones in stages.items():
        tables: dict[BackboneName, RankTable] = {}
        for backbone, graphs in of_backbones.items():
            table = ranks(findings.plan, graphs)
            if table is not None:
                tables[backbone] = table
        if not tables:
            continue
        rows = [
            [arm, *(f"{table.average[arm]:.2f}" for table in tables.values())]
            for arm in findings.plan.arms
        ]
        tests = "; ".join(
            f"{backbone}: Friedman p {p_value(table.friedman_p)}, critical difference "
            f"{table.critical_difference:.2f} over {len(table.datasets)}"
            for backbone, table in tables.items()
        )
        yield (
            f"## Average ranks on {stage} graphs\n\n{tests}. Arms whose ranks are "
            "closer than the critical difference (Nemenyi, 5 %) are not told apart.\n\n"
            + markdown_rows(["arm", *tables], rows)
        )


def _regression_section(findings: Findings) -> str:
    points = grid(findings.plan.generated)
    wanted = [c for c in findings.plan.contrasts if (c.arm, c.against) in _REGRESSED]
    rows, names = [], []
    for contrast in wanted:
        for backbone, graphs in findings.generated.items():
            found = regression(findings.plan, graphs, points, contrast)
            if not found:
                continue
            names = list(found)
            cells = [
                f"{signed(coefficient.value, 1)}{'*' if p < 0.05 else ''}"
                for coefficient, p in found.values()
            ]
            rows.append([contrast.name, backbone, *cells])
    if not rows:
        return ""
    return (
        "## What the differences depend on\n\n"
        "Least squares over generated graphs: points by which a contrast changes when "
        "a value grows by 1, or is doubled; a star marks a Holm-corrected p below "
        "0.05.\n\n" + markdown_rows(["contrast", "backbone", *names], rows)
    )
