"""Whether the chosen cell replaces the present default, on fresh seeds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tempergat.stats import ALPHA, compare_pairs
from tempergat.study.default_recipe.plan import DefaultPlan, confirmation_file
from tempergat.study.engine import Run, config_hash, read_runs
from tempergat.study.results import predicted_class
from tempergat.study.search import Setting


class Pair(NamedTuple):
    """A number of the present default and that of the chosen cell."""

    present: float
    chosen: float


@dataclass(frozen=True)
class GraphResult:
    """One graph: both cells over the same seeds.

    Attributes:
        graph: Its name.
        family: Its family.
        scores: Mean test scores in percent, by baseline.
        one_class: Runs that predict one class, or failed, over all baselines.
    """

    graph: str
    family: str
    scores: Mapping[str, Pair]
    one_class: Pair

    @property
    def gain(self) -> float:
        """Points gained, mean over baselines."""
        gains = [pair.chosen - pair.present for pair in self.scores.values()]
        return sum(gains) / len(gains)


@dataclass(frozen=True)
class ConfirmationResult:
    """The test of the plan.

    Attributes:
        graphs: The graphs that have all their runs.
        gain: Mean gain over families, in points.
        p: Wilcoxon's test over families; None for fewer than two.
        is_complete: Whether there are as many families as the plan asks for.
    """

    graphs: Sequence[GraphResult]
    gain: float
    p: float | None
    is_complete: bool

    @property
    def worse(self) -> list[str]:
        """Graphs with more runs that predict one class than before."""
        return [
            one.graph
            for one in self.graphs
            if one.one_class.chosen > one.one_class.present
        ]

    @property
    def replaces(self) -> bool:
        """Whether the chosen cell becomes the default, by the rule of the plan."""
        is_better = self.gain > 0 and self.p is not None and self.p < ALPHA
        return self.is_complete and is_better and not self.worse


def confirmation_result(
    plan: DefaultPlan, chosen: Mapping[str, Setting], results: Path
) -> ConfirmationResult | None:
    """The test on the runs that are there; None where no graph has all of them.

    Args:
        plan: The plan.
        chosen: The cell that the search chose.
        results: The project's folder of results.

    Raises:
        UserError: A file cannot be read.
    """
    found = []
    for family, names in plan.families.items():
        for graph in names:
            path = results / confirmation_file(graph)
            runs = read_runs(path) if path.exists() else []
            one = _graph_result(plan, chosen, graph, family, runs)
            if one is not None:
                found.append(one)
    if not found:
        return None
    return family_test(found, plan.confirmation.least_families)


def family_test(
    graphs: Sequence[GraphResult], least_families: int
) -> ConfirmationResult:
    """The plan's test over the families of some graphs."""
    by_family = dict(enumerate(family_gains(graphs).values()))
    (compared,) = compare_pairs(
        {"gain": by_family, "none": dict.fromkeys(by_family, 0.0)}, {"gain": "none"}
    )
    return ConfirmationResult(
        graphs,
        sum(by_family.values()) / len(by_family),
        compared.wilcoxon_p,
        len(by_family) >= least_families,
    )


def family_gains(graphs: Sequence[GraphResult]) -> dict[str, float]:
    """The mean gain of each family's graphs, in points."""
    gains: dict[str, list[float]] = {}
    for one in graphs:
        gains.setdefault(one.family, []).append(one.gain)
    return {family: sum(of) / len(of) for family, of in gains.items()}


def _graph_result(
    plan: DefaultPlan,
    chosen: Mapping[str, Setting],
    graph: str,
    family: str,
    runs: Sequence[Run],
) -> GraphResult | None:
    by_config: dict[str, list[Run]] = {}
    for run in runs:
        if run.seed in plan.confirmation.run_seeds:
            by_config.setdefault(run.config_hash, []).append(run)
    scores, one_class = {}, [0, 0]
    for method in plan.methods:
        means = []
        for place, cell in enumerate((plan.present, chosen)):
            config = plan.config(cell, method)
            of_cell = by_config.get(config_hash(config.model_dump(mode="json")), [])
            done = [run for run in of_cell if run.status == "done"]
            if len(of_cell) != plan.confirmation.seeds or not done:
                return None
            tests = [100.0 * run.scores[config.selection].test for run in done]
            means.append(sum(tests) / len(tests))
            alike = sum(predicted_class(run) is not None for run in done)
            one_class[place] += alike + len(of_cell) - len(done)
        scores[method] = Pair(*means)
    return GraphResult(graph, family, scores, Pair(*one_class))
