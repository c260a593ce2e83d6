"""Which candidate the second plan chooses, and whether it becomes the default."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import rankdata

from tempergat.study.default_recipe.confirmation import (
    ConfirmationResult,
    GraphResult,
    Pair,
    family_gains,
    family_test,
)
from tempergat.study.default_recipe.second_plan import (
    SecondPlan,
    second_file,
    second_graphs,
)
from tempergat.study.engine import Run, config_hash, read_runs
from tempergat.study.results import predicted_class
from tempergat.study.search import Setting


@dataclass(frozen=True)
class GraphCells:
    """All cells on one graph; arrays have a row per baseline and a column per cell.

    Attributes:
        graph: Its name.
        family: Its family.
        val: Mean validation scores in percent; minus infinity where a run failed.
        test: Mean test scores of the finished runs in percent.
        wrong: How many runs went wrong, by the plan's definition.
    """

    graph: str
    family: str
    val: np.ndarray
    test: np.ndarray
    wrong: np.ndarray


@dataclass(frozen=True)
class SecondResult:
    """What the second plan found.

    Attributes:
        plan: The plan.
        cells: The graphs that have all their runs.
        missing: The other graphs.
        ranks: The average rank of each candidate in validation score.
    """

    plan: SecondPlan
    cells: Sequence[GraphCells]
    missing: Sequence[str]
    ranks: Sequence[float]

    @property
    def chosen(self) -> int:
        """The place of the best candidate among all cells."""
        return 1 + int(np.argmin(self.ranks))

    @property
    def chosen_settings(self) -> Mapping[str, Setting]:
        """The settings of the best candidate."""
        return self.plan.cells[self.chosen]

    @property
    def ranks_where_used(self) -> tuple[float, ...]:
        """As `ranks`, over the graphs that use the default alone."""
        return candidate_ranks(self.deciding, len(self.plan.candidates))

    @property
    def deciding(self) -> Sequence[GraphCells]:
        """The graphs that the conditions are about."""
        without = self.plan.with_own_recipe
        return [one for one in self.cells if one.graph not in without]

    def test(self, cell: int, graphs: Sequence[GraphCells]) -> ConfirmationResult:
        """A cell against the present default over the families of some graphs."""
        found = [
            GraphResult(
                one.graph,
                one.family,
                {
                    method: Pair(float(row[0]), float(row[cell]))
                    for method, row in zip(self.plan.methods, one.test, strict=True)
                },
                Pair(*(int(one.wrong[:, place].sum()) for place in (0, cell))),
            )
            for one in graphs
        ]
        return family_test(found, self.plan.least_families)

    @property
    def is_complete(self) -> bool:
        """Whether enough families have their runs for a decision."""
        families = {one.family for one in self.deciding}
        return len(families) >= self.plan.least_families

    @property
    def too_large_losses(self) -> dict[str, float]:
        """The gain of each family that loses more than the plan allows."""
        gains = family_gains(self.test(self.chosen, self.deciding).graphs)
        allowed = -self.plan.largest_loss
        return {family: gain for family, gain in gains.items() if gain < allowed}

    def wrong_runs(self, cell: int) -> int:
        """How many of a cell's runs went wrong on the graphs of the conditions."""
        return int(sum(one.wrong[:, cell].sum() for one in self.deciding))

    @property
    def replaces(self) -> bool:
        """Whether the chosen candidate becomes the default, by the plan's rule."""
        if not self.is_complete:
            return False
        wrong, before = self.wrong_runs(self.chosen), self.wrong_runs(0)
        return (
            self.test(self.chosen, self.deciding).gain > 0
            and not self.too_large_losses
            and (wrong == 0 or wrong < before)
        )


def second_result(plan: SecondPlan, results: Path) -> SecondResult | None:
    """What was found so far; None where no graph of the conditions has all its runs.

    Args:
        plan: The plan.
        results: The project's folder of results.

    Raises:
        UserError: A file cannot be read.
    """
    cells, missing = [], []
    for graph, family in second_graphs(results).items():
        path = results / second_file(graph)
        runs = read_runs(path) if path.exists() else []
        one = graph_cells(plan, graph, family, runs)
        if one is None:
            missing.append(graph)
        else:
            cells.append(one)
    if all(one.graph in plan.with_own_recipe for one in cells):
        return None
    ranks = candidate_ranks(cells, len(plan.candidates))
    return SecondResult(plan, cells, missing, ranks)


def graph_cells(
    plan: SecondPlan, graph: str, family: str, runs: Sequence[Run]
) -> GraphCells | None:
    """All cells on one graph; None where runs are missing, or all of a cell failed."""
    by_config: dict[str, list[Run]] = {}
    for run in runs:
        if run.seed in plan.run_seeds:
            by_config.setdefault(run.config_hash, []).append(run)
    shape = (len(plan.methods), len(plan.cells))
    val, test, wrong = np.zeros(shape), np.zeros(shape), np.zeros(shape, int)
    for row, method in enumerate(plan.methods):
        for column in range(len(plan.cells)):
            config = plan.config(column, method)
            of_cell = by_config.get(config_hash(config.model_dump(mode="json")), [])
            done = [run for run in of_cell if run.status == "done"]
            if len(of_cell) != plan.seeds or not done:
                return None
            scores = [run.scores[config.selection] for run in done]
            vals = np.array([100.0 * score.val for score in scores])
            failed = len(of_cell) - len(done)
            place = row, column
            val[place] = -np.inf if failed else vals.mean()
            test[place] = np.mean([100.0 * score.test for score in scores])
            is_far_below = vals < np.median(vals) - plan.far_below
            is_one_class = [predicted_class(run) is not None for run in done]
            wrong[place] = failed + int(np.sum(is_far_below | np.array(is_one_class)))
    return GraphCells(graph, family, val, test, wrong)


def candidate_ranks(cells: Sequence[GraphCells], candidates: int) -> tuple[float, ...]:
    """The rank of each candidate by validation score; 1 is best.

    Averaged over baselines, over the graphs of a family, and over families.

    Args:
        cells: The graphs.
        candidates: How many of the columns after the first are candidates.
    """
    by_family: dict[str, list[np.ndarray]] = {}
    for one in cells:
        ranks = rankdata(-one.val[:, 1 : 1 + candidates], axis=1).mean(axis=0)
        by_family.setdefault(one.family, []).append(ranks)
    average = np.mean([np.mean(of, axis=0) for of in by_family.values()], axis=0)
    return tuple(map(float, average))
