"""The evidence across graphs on docs/when.md: contrasts, ranks, regressions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tempergat.base import joined
from tempergat.nn import BackboneName
from tempergat.stats import ALPHA, RankTable
from tempergat.study.report import markdown_rows, p_value, signed
from tempergat.study.when.graphs import grid
from tempergat.study.when.report.analysis import Across, ranks, regression
from tempergat.study.when.report.findings import (
    ALL,
    HETEROPHILIC,
    HOMOPHILIC,
    REAL,
    Findings,
)

_KINDS = {
    HETEROPHILIC: "Generated, homophily at or below chance",
    HOMOPHILIC: "Generated, homophily above chance",
    ALL: "All generated graphs",
    REAL: "Real graphs",
}

_REGRESSED = {
    "residual - plain": "the residual's gain",
    "post_gate - plain": "the gate's gain",
    "temperature - plain": "the temperature's gain",
}


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
            "arm is better and worse by paired tests within a graph, Holm-corrected. "
            '"Equivalent" and "below the bound": two one-sided t-tests show a mean '
            f"within {findings.plan.bounds.equivalence:g} point of 0.\n"
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
        first = next(iter(tables.values()))
        yield (
            f"## Average ranks on {stage} graphs\n\n"
            "Friedman's test asks whether all arms rank alike: p "
            f"{joined([f'{p_value(t.friedman_p)} ({b})' for b, t in tables.items()])}. "
            "Nemenyi's test asks which pairs of arms differ: at 5 % the average ranks "
            f"of {len(first.average)} arms over {len(first.datasets)} "
            f"{'families' if stage == 'real' else 'graphs'} must be "
            f"{first.critical_difference:.2f} or more apart. It ranks\n\n"
            + "".join(_separated_line(b, table) for b, table in tables.items())
            + f"\n{_not_separated(tables)}"
            + markdown_rows(["arm", *tables], rows)
        )


def _separated_line(backbone: str, table: RankTable) -> str:
    """A list item: which arms rank below which others."""
    found = []
    for worse in reversed(table.average):
        above = [arm for arm in table.average if _are_separated(table, arm, worse)]
        above = [arm for arm in above if table.average[arm] < table.average[worse]]
        if above:
            found.append(f"{worse} below {joined(above)}")
    return f"- {backbone}: {'; '.join(found) or 'no arm below another'}.\n"


def _not_separated(tables: Mapping[BackboneName, RankTable]) -> str:
    """Which of the study's main pairs are separated with no backbone."""
    pairs = (("residual", "plain"), ("post_gate", "plain"), ("post_gate", "residual"))
    found = [
        f"{arm} from {against}"
        for arm, against in pairs
        if not any(_are_separated(table, arm, against) for table in tables.values())
    ]
    if not found:
        return ""
    return (
        f"So it does not separate {joined(found)}. That is no sign that they are "
        "alike: ranks ignore how large a gain is.\n\n"
    )


def _are_separated(table: RankTable, arm: str, other: str) -> bool:
    apart = abs(table.average[arm] - table.average[other])
    return apart >= table.critical_difference


def regression_section(findings: Findings) -> str:
    """Differences by what was varied on the generated graphs."""
    points = grid(findings.plan.generated)
    rows, names = [], []
    # By contrast, the sign of each clear coefficient with each backbone.
    signs: dict[str, list[set[tuple[str, bool]]]] = {}
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
            signs.setdefault(contrast.name, []).append(
                {(n, c.value > 0.0) for n, (c, p) in found.items() if p < ALPHA}
            )
    if not rows:
        return ""
    summary = "; ".join(
        _dependence(words, names, set.intersection(*signs[name]))
        for name, words in _REGRESSED.items()
        if name in signs
    )
    return (
        "## What the differences depend on\n\n"
        "Least squares over generated graphs: points by which a contrast changes when "
        "a value grows by 1, or is doubled; a star marks a Holm-corrected p below "
        f"0.05. With both backbones {summary}. The model has no interactions, although "
        "a factor may act otherwise at low homophily than at high.\n\n"
        + markdown_rows(["contrast", "backbone", *names], rows)
    )


def _dependence(words: str, names: list[str], signs: set[tuple[str, bool]]) -> str:
    """A clause: with which factors a gain rises and falls, with both backbones."""
    rises, falls = (
        [name.removesuffix(", doubled") for name in names if (name, is_rise) in signs]
        for is_rise in (True, False)
    )
    parts = [
        f"{verb} with {joined(factors)}"
        for verb, factors in (("falls", falls), ("rises", rises))
        if factors
    ]
    if not parts:
        return f"{words} is not shown to depend on any of them"
    return f"{words} {' and '.join(parts)}"
