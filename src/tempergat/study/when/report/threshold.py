"""Real graphs on both sides of the rule's threshold of adjusted homophily."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from tempergat.base import joined
from tempergat.nn import BackboneName
from tempergat.study.report import markdown_rows, signed
from tempergat.study.when.plan import WhenPlan
from tempergat.study.when.report.analysis import Measured, family_differences
from tempergat.study.when.report.findings import Findings

_COMPARED = {
    ("residual", "plain"): "residual - plain",
    ("post_gate", "plain"): "gate on the output - plain",
    ("neighbour_gate", "plain"): "gate fed by neighbours - plain",
    ("constant_gate", "plain"): "constant gate - plain",
    ("post_gate", "residual"): "gate on the output - residual",
    ("post_gate_residual", "residual"): "gate and residual - residual",
    ("post_gate", "neighbour_gate"): "gate on the output - gate fed by neighbours",
    ("post_gate", "constant_gate"): "gate on the output - constant gate",
    ("temperature", "plain"): "temperature - plain",
}


@dataclass(frozen=True)
class Side:
    """Two arms on the real graphs on one side of the threshold.

    Attributes:
        families: The mean difference in points of each family.
        graphs: The mean difference of each graph.
        better: On how many graphs the arm is better, by the test within the graph; None
            where the plan has no such test.
        worse: On how many graphs it is worse.
    """

    families: dict[str, float]
    graphs: dict[str, float]
    better: int | None
    worse: int | None

    @property
    def mean(self) -> float:
        """The mean over families."""
        return float(np.mean(list(self.families.values())))

    @property
    def gaining(self) -> int:
        """In how many families the mean difference is above 0."""
        return sum(value > 0.0 for value in self.families.values())


def by_homophily(
    plan: WhenPlan, graphs: Sequence[Measured]
) -> list[tuple[float, Measured]]:
    """Real graphs with the adjusted homophily that the plan states, in its order."""
    known = {graph.name: graph.adjusted_homophily for graph in plan.real.graphs}
    return sorted(((known[g.graph], g) for g in graphs), key=itemgetter(0))


def side(
    findings: Findings,
    backbone: BackboneName,
    arm: str,
    against: str = "plain",
    *,
    is_below: bool,
) -> Side | None:
    """Compares two arms on one side of the threshold; None without a graph there.

    Args:
        findings: The results.
        backbone: The backbone.
        arm: The arm.
        against: What it is compared with.
        is_below: Whether graphs below the threshold are meant, or the others.
    """
    graphs = _graphs(findings, backbone, is_below=is_below)
    if not graphs:
        return None
    tests = [
        findings.test_within(backbone, graph.graph, arm, against) for graph in graphs
    ]
    verdicts = [test.verdict for test in tests if test is not None]
    return Side(
        family_differences(graphs, arm, against),
        {graph.graph: graph.mean(arm) - graph.mean(against) for graph in graphs},
        verdicts.count("better") if verdicts else None,
        verdicts.count("worse") if verdicts else None,
    )


def sides(
    findings: Findings, arm: str, against: str = "plain", *, is_below: bool
) -> list[Side]:
    """`side` of every backbone; empty where one has no graph there."""
    found = [
        side(findings, backbone, arm, against, is_below=is_below)
        for backbone in findings.plan.backbones
    ]
    return [] if None in found else [one for one in found if one is not None]


def threshold_section(findings: Findings) -> str:
    """The gains below and above the threshold; empty without real graphs."""
    tables = [
        _table(findings, is_below=is_below)
        for is_below in (True, False)
        if sides(findings, "residual", is_below=is_below)
    ]
    if not tables:
        return ""
    return (
        f"## Real graphs below and above adjusted homophily "
        f"{findings.plan.rule.threshold:g}\n\n"
        "The threshold was fixed before any real graph was run; this comparison is not "
        "in the plan. Points are means over families of graphs, with the lowest and "
        'the highest family. "Gain" counts the families with a mean above 0. "Better" '
        'and "worse" count graphs by the paired tests within a graph (Holm-corrected), '
        "where the plan has the test.\n\n"
        f"{_summary(findings)}" + "\n".join(tables)
    )


def _summary(findings: Findings) -> str:
    """A paragraph on the residual; empty where a side has no graphs."""
    below = sides(findings, "residual", is_below=True)
    above = sides(findings, "residual", is_below=False)
    if not below or not above:
        return ""
    gains, ranges = [], []
    for backbone, low, high in zip(findings.plan.backbones, below, above, strict=True):
        others = [family for family, value in low.families.items() if value <= 0.0]
        but = f" (all but {joined(others)})" if others else ""
        gains.append(f"{low.gaining} of {len(low.families)} with {backbone}{but}")
        values = high.families.values()
        ranges.append(
            f"{signed(min(values), 1)} to {signed(max(values), 1)} points ({backbone})"
        )
    return (
        f"Families in which a residual gains below the threshold: {joined(gains)}. "
        f"Above it, a residual changes families by {joined(ranges)}.\n\n"
    )


def _table(findings: Findings, *, is_below: bool) -> str:
    backbones = findings.plan.backbones
    rows = []
    for (arm, against), words in _COMPARED.items():
        row = [words]
        for found in sides(findings, arm, against, is_below=is_below):
            row += _cells(found)
        rows.append(row)
    graphs = _graphs(findings, backbones[0], is_below=is_below)
    families = len({graph.family for graph in graphs})
    word = "below" if is_below else "above"
    columns = [f"{word}: {len(graphs)} graphs of {families} families"]
    for backbone in backbones:
        columns += [f"{backbone}: points (families)", "gain", "better, worse"]
    return markdown_rows(columns, rows)


def _cells(found: Side) -> list[str]:
    values = found.families.values()
    tested = found.better is not None
    return [
        f"{signed(found.mean, 1)} ({signed(min(values), 1)} to "
        f"{signed(max(values), 1)})",
        f"{found.gaining} of {len(values)}",
        f"{found.better}, {found.worse} of {len(found.graphs)}" if tested else "-",
    ]


def _graphs(
    findings: Findings, backbone: BackboneName, *, is_below: bool
) -> Sequence[Measured]:
    """The complete real graphs on one side of the threshold."""
    threshold = findings.plan.rule.threshold
    return [
        graph
        for homophily, graph in by_homophily(findings.plan, findings.real[backbone])
        if (homophily < threshold) == is_below
    ]
