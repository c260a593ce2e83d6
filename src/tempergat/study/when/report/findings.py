"""What the plan's rules make of the results: claims, and what to use when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tempergat.nn import BackboneName
from tempergat.stats import PairedComparison
from tempergat.study.when.graphs import grid, is_heterophilic
from tempergat.study.when.plan import WhenPlan
from tempergat.study.when.report.analysis import (
    Across,
    Measured,
    across,
    measured,
    within,
)
from tempergat.study.when.report.failures import Untrained, find_untrained
from tempergat.study.when.runs.rows import Row, Stage

HETEROPHILIC = "heterophilic"
HOMOPHILIC = "homophilic"
ALL = "all"
REAL = "real"


@dataclass(frozen=True)
class Findings:
    """The results of the study.

    Attributes:
        plan: The plan.
        generated: The complete generated graphs of each backbone.
        real: The complete real graphs of each backbone.
        tests: All contrasts by kind of graphs and backbone; a kind without two complete
            graphs is left out.
        pairs: The tests within each graph, by backbone and graph, in the order of the
            plan's contrasts.
        untrained: The runs that failed to train, by stage.
        parameters: Parameters of each arm on a generated graph, by backbone.
        devices: How many runs were made on each device.
        failed: How many runs ended without a score.
    """

    plan: WhenPlan
    generated: Mapping[BackboneName, Sequence[Measured]]
    real: Mapping[BackboneName, Sequence[Measured]]
    tests: Mapping[tuple[str, BackboneName], Sequence[Across]]
    pairs: Mapping[tuple[BackboneName, str], Sequence[PairedComparison]]
    untrained: Mapping[Stage, Untrained]
    parameters: Mapping[tuple[str, str], int]
    devices: Mapping[str, int]
    failed: int

    def test_within(
        self, backbone: BackboneName, graph: str, arm: str, against: str = "plain"
    ) -> PairedComparison | None:
        """A contrast on one graph; None where the plan does not name it."""
        contrasts = self.plan.contrasts
        for contrast, found in zip(contrasts, self.pairs[backbone, graph], strict=True):
            if (contrast.arm, contrast.against) == (arm, against):
                return found
        return None

    def test(
        self, kind: str, backbone: BackboneName, arm: str, against: str = "plain"
    ) -> Across | None:
        """A contrast over graphs of a kind; None where it could not be tested."""
        for found in self.tests.get((kind, backbone), ()):
            if (found.contrast.arm, found.contrast.against) == (arm, against):
                return found
        return None

    def tests_of(self, kind: str, arm: str, against: str = "plain") -> list[Across]:
        """A contrast with every backbone; empty where one could not be tested."""
        tests = [self.test(kind, b, arm, against) for b in self.plan.backbones]
        return [] if None in tests else [test for test in tests if test is not None]


@dataclass(frozen=True)
class Claim:
    """A claim of the plan, with the conditions that it needs.

    Attributes:
        conditions: Whether each condition holds, by its words and the backbone.
    """

    conditions: Mapping[tuple[str, BackboneName], bool] = field(default_factory=dict)

    @property
    def is_supported(self) -> bool:
        """Whether there are conditions and all of them hold."""
        return bool(self.conditions) and all(self.conditions.values())


def find(
    plan: WhenPlan, generated_rows: Sequence[Row], real_rows: Sequence[Row]
) -> Findings:
    """Tests everything that the plan asks for on the graphs that are complete."""
    points = grid(plan.generated)
    families = {graph.name: graph.family for graph in plan.real.graphs}
    # A real graph counts once all arms of all backbones have their runs.
    counts = Counter(row.key.graph for row in real_rows)
    needed = len(plan.backbones) * len(plan.arms) * len(plan.real.seeds)
    whole_rows = [row for row in real_rows if counts[row.key.graph] == needed]
    generated, real, tests = {}, {}, {}
    pairs: dict[tuple[BackboneName, str], list[PairedComparison]] = {}
    for backbone in plan.backbones:
        seeds = len(plan.generated.seeds)
        generated[backbone] = measured(plan, generated_rows, backbone, seeds)
        seeds = len(plan.real.seeds)
        real[backbone] = measured(plan, whole_rows, backbone, seeds, families)
        hetero = [
            graph
            for graph in generated[backbone]
            if is_heterophilic(plan.generated, points[graph.graph])
        ]
        homo = [graph for graph in generated[backbone] if graph not in hetero]
        kinds = {
            ALL: generated[backbone],
            HETEROPHILIC: hetero,
            HOMOPHILIC: homo,
            REAL: real[backbone],
        }
        of_graphs = {
            graph.graph: within(graph, plan.contrasts)
            for graph in (*generated[backbone], *real[backbone])
        }
        pairs |= {(backbone, graph): found for graph, found in of_graphs.items()}
        for kind, graphs in kinds.items():
            if len(graphs) >= 2:
                tests[kind, backbone] = across(plan, graphs, of_graphs)
    rows = [*generated_rows, *whole_rows]
    devices = {row.device: 0 for row in rows}
    for row in rows:
        devices[row.device] += 1
    return Findings(
        plan,
        generated,
        real,
        tests,
        pairs,
        {
            "generated": find_untrained(generated_rows),
            "real": find_untrained(whole_rows),
        },
        {(row.key.backbone, row.key.arm): row.parameters for row in generated_rows},
        devices,
        sum(row.test is None for row in rows),
    )


def own_path_claim(findings: Findings, kind: str = HETEROPHILIC) -> Claim:
    """Is the gate on the output a path for the target's own features?"""
    conditions: dict[tuple[str, BackboneName], bool] = {}
    share = findings.plan.bounds.shared_gain
    for backbone in findings.plan.backbones:
        gate = findings.test(kind, backbone, "post_gate")
        beside = findings.test(kind, backbone, "post_gate", "residual")
        on_top = findings.test(kind, backbone, "post_gate_residual", "residual")
        neighbour = findings.test(kind, backbone, "neighbour_gate")
        constant = findings.test(kind, backbone, "constant_gate")
        if not (gate and beside and on_top and neighbour and constant):
            return Claim()
        held = {
            "the gate gains over plain": gate.is_better,
            "the residual is better than the gate, or equivalent": (
                beside.is_worse or beside.is_equivalent
            ),
            "the gate adds nothing to the residual": (
                on_top.is_worse or on_top.is_equivalent
            ),
            f"the gate fed by neighbours gains less than {share:g} times the gate's "
            "gain": neighbour.mean < share * gate.mean,
            f"the constant gate gains less than {share:g} times the gate's gain": (
                constant.mean < share * gate.mean
            ),
        }
        conditions |= {(words, backbone): holds for words, holds in held.items()}
    return Claim(conditions)


def temperature_claim(findings: Findings, arm: str, against: str) -> Claim:
    """Does a temperature help, over all generated graphs?"""
    conditions = {}
    for backbone in findings.plan.backbones:
        test = findings.test(ALL, backbone, arm, against)
        if test is None:
            return Claim()
        helps = test.is_better and not test.is_equivalent
        conditions[f"{arm} is better than {against}", backbone] = helps
    return Claim(conditions)
