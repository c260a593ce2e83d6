"""What the rows show: within graphs, across graphs, and by what was varied."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from tempergat.stats import (
    ALPHA,
    Coefficient,
    PairedComparison,
    RankTable,
    Summary,
    average_ranks,
    compare_pairs,
    equivalence_p,
    holm,
    least_squares,
    summarise,
    wilcoxon_p,
)
from tempergat.study.when.graphs import GeneratedGraph
from tempergat.study.when.plan import Contrast, WhenPlan
from tempergat.study.when.runs.rows import Row

# Scores by seed, or by split where every seed has another one.
Scores = dict[int, float | None]


@dataclass(frozen=True)
class Measured:
    """The runs of every arm of one backbone on one graph.

    Attributes:
        graph: The graph's name.
        family: Graphs of one family count as one across graphs.
        scores: Test scores in points by arm and seed.
    """

    graph: str
    family: str
    scores: Mapping[str, Scores]

    def mean(self, arm: str) -> float:
        """The mean of an arm's finished runs; 0 where all failed."""
        finished = [s for s in self.scores[arm].values() if s is not None]
        return float(np.mean(finished)) if finished else 0.0

    def difference(self, contrast: Contrast) -> float:
        """The difference of the two arms' means."""
        return self.mean(contrast.arm) - self.mean(contrast.against)

    def gain(self, arm: str) -> Summary:
        """Differences of an arm to the plain backbone, over seeds."""
        plain = self.scores["plain"]
        pairs = ((score, plain.get(seed)) for seed, score in self.scores[arm].items())
        return summarise([a - b for a, b in pairs if a is not None and b is not None])


@dataclass(frozen=True)
class Across:
    """A contrast over several graphs.

    Attributes:
        contrast: The two arms.
        graphs: How many families of graphs.
        mean: Mean difference over them, in points.
        low: Lower end of its 95 % t-interval.
        high: Upper end of it.
        p: p of Wilcoxon's test over them.
        p_holm: The same after Holm's correction over the contrasts.
        is_equivalent: Whether two one-sided tests show it to be within the plan's
            bound of 0.
        better: On how many graphs the arm is better, by the test within the graph.
        worse: On how many it is worse.
        tested: On how many graphs that was tested.
    """

    contrast: Contrast
    graphs: int
    mean: float
    low: float | None
    high: float | None
    p: float | None
    p_holm: float | None
    is_equivalent: bool
    better: int
    worse: int
    tested: int

    @property
    def is_better(self) -> bool:
        """Whether the arm is shown to be better across graphs."""
        return self._is_shown and self.mean > 0.0

    @property
    def is_worse(self) -> bool:
        """Whether the arm is shown to be worse across graphs."""
        return self._is_shown and self.mean < 0.0

    @property
    def _is_shown(self) -> bool:
        return self.p_holm is not None and self.p_holm < ALPHA

    @property
    def verdict(self) -> str:
        """What is shown, in words."""
        size = ", but below the bound" if self.is_equivalent else ""
        if self.is_better:
            return f"better{size}"
        if self.is_worse:
            return f"worse{size}"
        return "equivalent" if self.is_equivalent else "not shown to differ"


def measured(
    plan: WhenPlan,
    rows: Iterable[Row],
    backbone: str,
    runs: int,
    families: Mapping[str, str] | None = None,
) -> list[Measured]:
    """The graphs on which all arms of a backbone have all their runs.

    Args:
        plan: The plan.
        rows: Rows of one stage.
        backbone: The backbone.
        runs: How many runs an arm has.
        families: The family of each graph; by default each is its own.
    """
    found: dict[str, dict[str, Scores]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        if row.key.backbone == backbone:
            found[row.key.graph][row.key.arm][row.key.seed] = row.test
    return [
        Measured(graph, (families or {}).get(graph, graph), dict(scores))
        for graph, scores in found.items()
        if all(len(scores.get(arm, ())) == runs for arm in plan.arms)
    ]


def within(graph: Measured, contrasts: Sequence[Contrast]) -> list[PairedComparison]:
    """Paired tests of all contrasts on one graph, Holm-corrected together."""
    # An arm may be compared with several others, so a contrast's arm gets its name.
    scores = dict(graph.scores)
    scores |= {c.name: graph.scores[c.arm] for c in contrasts}
    return compare_pairs(scores, {c.name: c.against for c in contrasts})


def across(
    plan: WhenPlan,
    graphs: Sequence[Measured],
    tests: Mapping[str, Sequence[PairedComparison]],
) -> list[Across]:
    """All contrasts over some graphs, Holm-corrected together.

    Args:
        plan: The plan.
        graphs: The graphs.
        tests: What `within` returned for each graph, by its name.
    """
    differences = [
        list(family_differences(graphs, contrast.arm, contrast.against).values())
        for contrast in plan.contrasts
    ]
    ps = [across_p(values) for values in differences]
    found = []
    for number, (contrast, values, p, p_holm) in enumerate(
        zip(plan.contrasts, differences, ps, holm(ps), strict=True)
    ):
        summary = summarise(values)
        verdicts = [tests[graph.graph][number].verdict for graph in graphs]
        found.append(
            Across(
                contrast,
                len(values),
                summary.mean or 0.0,
                summary.low,
                summary.high,
                p,
                p_holm,
                is_equivalent(values, plan.bounds.equivalence),
                verdicts.count("better"),
                verdicts.count("worse"),
                len(verdicts),
            )
        )
    return found


def by_family(graphs: Iterable[Measured]) -> dict[str, list[Measured]]:
    """The graphs of each family."""
    families: dict[str, list[Measured]] = defaultdict(list)
    for graph in graphs:
        families[graph.family].append(graph)
    return dict(families)


def family_differences(
    graphs: Iterable[Measured], arm: str, against: str
) -> dict[str, float]:
    """The mean difference of two arms in each family, over the family's graphs."""
    return {
        family: float(np.mean([g.mean(arm) - g.mean(against) for g in members]))
        for family, members in by_family(graphs).items()
    }


def across_p(values: Sequence[float]) -> float | None:
    """The p of Wilcoxon's test that values are symmetric about 0; None for one."""
    rounded = np.round(values, 9)
    if len(rounded) < 2:
        return None
    return wilcoxon_p(rounded) if rounded.any() else 1.0


def is_equivalent(values: Sequence[float], bound: float) -> bool:
    """Whether two one-sided t-tests show the mean of values to be within a bound."""
    if len(values) < 2:
        return False
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    mean = float(np.mean(values))
    if error == 0.0:
        return abs(mean) < bound
    return equivalence_p(mean, error, len(values) - 1, bound) < ALPHA


def ranks(plan: WhenPlan, graphs: Sequence[Measured]) -> RankTable | None:
    """Ranks of all arms over families of graphs; None for fewer than two."""
    families = by_family(graphs)
    if len(families) < 2:
        return None
    return average_ranks(
        {
            family: {
                arm: float(np.mean([graph.mean(arm) for graph in members]))
                for arm in plan.arms
            }
            for family, members in families.items()
        }
    )


def regression(
    plan: WhenPlan,
    graphs: Sequence[Measured],
    grid: Mapping[str, GeneratedGraph],
    contrast: Contrast,
) -> dict[str, tuple[Coefficient, float]]:
    """A contrast's difference on generated graphs, regressed on what was varied.

    Returns:
        By name, the coefficient and its Holm-corrected p; nothing where there are too
        few graphs.
    """
    points = [grid[graph.graph] for graph in graphs]
    centre, chance = plan.generated.centre, 1.0 / plan.generated.classes
    columns = {
        "homophily": [point.homophily for point in points],
        "distance from chance": [abs(point.homophily - chance) for point in points],
        "degree, doubled": [math.log2(p.degree / centre["degree"]) for p in points],
        "mu, doubled": [math.log2(p.mu / centre["mu"]) for p in points],
        "sigma, doubled": [math.log2(p.sigma / centre["sigma"]) for p in points],
        "rho": [point.rho for point in points],
        "label rate, doubled": [
            math.log2(p.label_rate / centre["label_rate"]) for p in points
        ],
    }
    try:
        found = least_squares(columns, [g.difference(contrast) for g in graphs])
    except ValueError:
        return {}
    corrected = holm([coefficient.p for coefficient in found.values()])
    return {
        name: (coefficient, p)
        for (name, coefficient), p in zip(found.items(), corrected, strict=True)
    }


def gains_together(graphs: Sequence[Measured]) -> float | None:
    """The correlation over graphs of the gate's gain and the residual's."""
    plain = [graph.mean("plain") for graph in graphs]
    gate = np.subtract([graph.mean("post_gate") for graph in graphs], plain)
    residual = np.subtract([graph.mean("residual") for graph in graphs], plain)
    if len(graphs) < 3 or np.ptp(gate) == 0.0 or np.ptp(residual) == 0.0:
        return None
    return float(np.corrcoef(gate, residual)[0, 1])


def homophily_line(
    graphs: Sequence[Measured], grid: Mapping[str, GeneratedGraph]
) -> list[tuple[float, Measured]]:
    """The generated graphs that differ in homophily alone, each with its homophily."""
    line = [g for g in graphs if grid[g.graph].varied in ("centre", "homophily")]
    return sorted(((grid[g.graph].homophily, g) for g in line), key=itemgetter(0))
