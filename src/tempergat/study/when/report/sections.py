"""The evidence on docs/when.md: arms, claims, contrasts, ranks, regressions."""

from __future__ import annotations

from collections.abc import Iterator

from tempergat.nn import BackboneName
from tempergat.stats import ALPHA, RankTable
from tempergat.study.report import markdown_rows, p_value, signed
from tempergat.study.when.arms import ARMS
from tempergat.study.when.graphs import grid
from tempergat.study.when.report.analysis import (
    Across,
    by_homophily,
    gains_together,
    ranks,
    regression,
    within,
)
from tempergat.study.when.report.findings import (
    ALL,
    HETEROPHILIC,
    HOMOPHILIC,
    REAL,
    Findings,
    own_path_claim,
)
from tempergat.study.when.report.rule import rule_test

_KINDS = {
    HETEROPHILIC: "Generated, homophily at or below chance",
    HOMOPHILIC: "Generated, homophily above chance",
    ALL: "All generated graphs",
    REAL: "Real graphs",
}


def arms_section(findings: Findings) -> str:
    """What each arm adds, and its parameters."""
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


def claim_section(findings: Findings) -> str:
    """The conditions of the plan's claim about the gate."""
    claim = own_path_claim(findings)
    lines = [
        f"- {words}: {'yes' if holds else 'no'}\n"
        for words, holds in claim.conditions.items()
    ]
    verdict = "supported" if claim.is_supported else "not supported"
    together = [
        f"{found:.2f} ({backbone})"
        for backbone, graphs in findings.generated.items()
        if (found := gains_together(graphs)) is not None
    ]
    return (
        "## Is the gate a path for the target's own features?\n\n"
        "The plan's conditions, on generated graphs with homophily at or below "
        f"chance; the claim is {verdict}:\n\n"
        + "".join(lines)
        + "\nNot in the plan: over all generated graphs, the gate's gain and the "
        f"residual's have a correlation of {' and '.join(together) or '-'}. So where "
        "a residual costs, the gate tends to cost as well.\n"
    )


def rule_section(findings: Findings) -> str:
    """The plan's rule, and what real graphs say about it."""
    rule = findings.plan.rule
    start = (
        "## A rule for `tempergat diagnose`\n\n"
        f"Made from generated graphs: gatv2 with {rule.below} where adjusted homophily "
        f"is below {rule.threshold:g}, {rule.otherwise} elsewhere. It is judged on "
        "real graphs against always gatv2 with a residual. "
    )
    found = rule_test(findings.plan, findings.real.get("gatv2", ()))
    if found is None or found.families < 2:
        return (
            start + "No two real graphs have all their runs, so `diagnose` goes on to "
            "recommend nothing.\n"
        )
    verdict = "is" if found.is_supported else "is not"
    return (
        start + f"Over {found.families} families it differs by {signed(found.mean)} "
        f"points (p {p_value(found.p)}): it {verdict} shown to be better.\n"
    )


def graphs_section(findings: Findings) -> str:
    """The gains on every real graph; empty without one."""
    names = ("residual", "post_gate", "temperature")
    rows: dict[str, list[str]] = {}
    for backbone in findings.plan.backbones:
        for homophily, graph in by_homophily(findings.plan, findings.real[backbone]):
            row = rows.setdefault(graph.graph, [graph.graph, f"{homophily:.2f}"])
            row.append(f"{graph.mean('plain'):.1f}")
            tests = within(graph, findings.plan.contrasts)
            by_name = {test.method: test for test in tests}
            for arm in names:
                test = by_name[f"{arm} - plain"]
                mark = "*" if test.verdict in ("better", "worse") else ""
                row.append(f"{signed(test.difference, 1)}{mark}")
    if not rows:
        return ""
    columns = ["graph", "adjusted homophily"]
    for backbone in findings.plan.backbones:
        columns += [f"{backbone}: plain", "residual", "gate", "temperature"]
    whole = [row for row in rows.values() if len(row) == len(columns)]
    return (
        "## Real graphs one by one\n\n"
        "Test score of the plain backbone in percent, and points over it of a "
        "residual, the gate on the output and a temperature; a star where the paired "
        "test within the graph shows a difference (Holm-corrected).\n\n"
        + markdown_rows(columns, whole)
    )


def contrast_sections(findings: Findings) -> Iterator[str]:
    """All contrasts, by kind of graph."""
    for kind, title in _KINDS.items():
        by_backbone = {
            backbone: tests
            for backbone in findings.plan.backbones
            if (tests := findings.tests.get((kind, backbone))) is not None
        }
        if not by_backbone:
            continue
        rows: dict[str, list[str]] = {}
        for tests in by_backbone.values():
            for test in tests:
                row = rows.setdefault(test.contrast.name, [test.contrast.name])
                row += _contrast_cells(test)
        columns = ["contrast"]
        for backbone in by_backbone:
            columns += [f"{backbone}: points", "p", "on graphs", "shown"]
        count = next(iter(by_backbone.values()))[0].graphs
        yield (
            f"## {title}\n\n"
            f"{count} {'families' if kind == REAL else 'graphs'}; p is Wilcoxon's over "
            'them, Holm-corrected; intervals are 95 %. "On graphs" counts where the '
            "arm is better and worse by paired tests within a graph, Holm-corrected.\n"
            "\n" + markdown_rows(columns, list(rows.values()))
        )


def _contrast_cells(test: Across) -> list[str]:
    return [
        f"{signed(test.mean)} ({signed(test.low)} to {signed(test.high)})",
        p_value(test.p_holm),
        f"{test.better} better, {test.worse} worse of {test.tested}",
        test.verdict,
    ]


def rank_sections(findings: Findings) -> Iterator[str]:
    """Average ranks of the arms."""
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
            f"{table.critical_difference:.2f} over {len(table.datasets)} "
            f"{'families' if stage == 'real' else 'graphs'}"
            for backbone, table in tables.items()
        )
        yield (
            f"## Average ranks on {stage} graphs\n\n{tests}. Arms whose ranks are "
            "closer than the critical difference (Nemenyi, 5 %) do not show which is "
            "better.\n\n" + markdown_rows(["arm", *tables], rows)
        )


def regression_section(findings: Findings) -> str:
    """Differences by what was varied on the generated graphs."""
    points = grid(findings.plan.generated)
    rows, names = [], []
    for contrast in findings.plan.contrasts:
        for backbone, graphs in findings.generated.items():
            found = regression(findings.plan, graphs, points, contrast)
            if not found:
                continue
            names = list(found)
            cells = [
                f"{signed(coefficient.value, 1)}{'*' if p < ALPHA else ''}"
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
