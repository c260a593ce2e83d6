"""docs/when.md, made from the plan and the rows in results/when/."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tempergat.base import write_into
from tempergat.study.report import filled
from tempergat.study.when.graphs import grid
from tempergat.study.when.plan import load_plan
from tempergat.study.when.report.across_graphs import (
    contrast_sections,
    rank_sections,
    regression_section,
)
from tempergat.study.when.report.advice import use_section
from tempergat.study.when.report.analysis import homophily_line
from tempergat.study.when.report.answer import answer
from tempergat.study.when.report.figures import Drawn, gains_figure
from tempergat.study.when.report.findings import Findings, find
from tempergat.study.when.report.sections import (
    arms_section,
    claim_section,
    graphs_section,
    rule_section,
    untrained_section,
)
from tempergat.study.when.report.threshold import by_homophily, threshold_section
from tempergat.study.when.runs.rows import CSV_OF_STAGE, read_rows

PAGE = "when.md"
FIGURE = "figures/when-gains"


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
        generated = {
            backbone: homophily_line(graphs, points)
            for backbone, graphs in findings.generated.items()
        }
        real = {
            backbone: by_homophily(plan, graphs)
            for backbone, graphs in findings.real.items()
        }
        drawn = Drawn(generated, real, chance, plan.rule.threshold)
        gains_figure(drawn, findings.untrained["real"], docs / FIGURE)
    write_into(docs, PAGE, page_text(findings))
    sentences = tuple(str(paragraph) for paragraph in answer(findings))
    return WhenReport(findings, sentences, docs / PAGE)


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
        + "\n\n".join(f"**{p.sentence}** {p.evidence}" for p in answer(findings))
        + "\n"
    ]
    if any(findings.generated.values()):
        parts.append(f"![Gains over the plain backbone]({FIGURE}.svg)\n")
        parts.append(_caption(findings))
    if findings.tests:
        parts.append(use_section(findings))
        parts.append(threshold_section(findings))
        parts.append(untrained_section(findings))
    parts.append(_what_was_run(findings))
    if findings.tests:
        parts.append(rule_section(findings))
        parts.append(graphs_section(findings))
        parts.append(claim_section(findings))
        parts += contrast_sections(findings)
        parts += rank_sections(findings)
        parts.append(regression_section(findings))
    parts.append(arms_section(findings))
    return filled("\n".join(part for part in parts if part))


def _caption(findings: Findings) -> str:
    text = (
        "Test accuracy minus that of the plain backbone; bars are 95 % intervals over "
        "seeds or splits. The generated graphs differ in homophily alone, and all arms "
        "have one setting there."
    )
    if any(findings.real.values()):
        text += (
            " On real graphs every arm has settings searched for it. Below the dashed "
            f"line adjusted homophily is above {findings.plan.rule.threshold:g}."
        )
        if findings.untrained["real"].count("residual", "post_gate", "temperature"):
            text += " A hollow marker: some runs failed to train."
    return f"{text}\n"


def _what_was_run(findings: Findings) -> str:
    plan = findings.plan
    points = grid(plan.generated)
    real = len(plan.real.graphs)
    families = len({graph.family for graph in plan.real.graphs})
    generated_done = min(len(found) for found in findings.generated.values())
    real_done = min(len(found) for found in findings.real.values())
    devices = ", ".join(
        f"{count:,} on {device}" for device, count in sorted(findings.devices.items())
    )
    missing = ""
    if real_done < real:
        missing = (
            f"\nStill missing: {real - real_done} of {real} real graphs "
            f"({', '.join(_unfinished(findings))}). `tempergat reproduce when --plan` "
            "lists what to run.\n"
        )
    done = set.intersection(
        *({graph.graph for graph in found} for found in findings.generated.values())
    )
    if absent := [name for name in points if name not in done]:
        missing += (
            f"\nStill missing: {len(absent)} of {len(points)} generated graphs "
            f"({'; '.join(absent[:5])}{'; ...' if len(absent) > 5 else ''}).\n"
        )
    return (
        "## What was run\n\n"
        "This page is made by `tempergat reproduce when` from `results/when/`; the "
        "plan there was written before the first run, except for the rule for "
        "`diagnose`, which was made from the generated graphs. "
        f"{len(plan.arms)} arms with each of {len(plan.backbones)} backbones; "
        f"{generated_done} of {len(points)} generated graphs "
        f"({plan.generated.nodes} nodes, {plan.generated.classes} classes, "
        f"{len(plan.generated.seeds)} seeds, one setting for all arms), on which "
        "homophily, degree, mu, sigma, rho and the label rate are varied one at a time "
        "around two centres. So these graphs are no random sample, and tests across "
        f"them are about this grid. {real_done} of {real} real graphs (a search of "
        f"{len(plan.real.search.changes())} settings x "
        f"{len(plan.real.search.seeds)} seeds for every arm, then "
        f"{len(plan.real.seeds)} fresh seeds or splits), which count as {families} "
        "families, because some share papers or are of one collection.\n\n"
        "All graphs are judged by accuracy, at the epoch with the best validation "
        "accuracy. The authors of tolokers report ROC AUC: 78 % of its nodes are of "
        "one class, so accuracy says little there. "
        f"Reported runs: {devices or 'none'}; {findings.failed or 'none'} ended with "
        f"an error.\n{missing}"
    )


def _unfinished(findings: Findings) -> list[str]:
    """The real graphs that lack runs of a backbone."""
    done = set.intersection(
        *({graph.graph for graph in found} for found in findings.real.values())
    )
    return [g.name for g in findings.plan.real.graphs if g.name not in done]
