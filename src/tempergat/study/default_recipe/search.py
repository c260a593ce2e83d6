"""The cell that the search chooses, by average rank in validation score."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import rankdata

from tempergat.study.default_recipe.plan import DefaultPlan, runs_file
from tempergat.study.engine import Run, config_hash, read_runs
from tempergat.study.search import Setting


@dataclass(frozen=True)
class SearchResult:
    """What the search found.

    Attributes:
        chosen: The settings of the best cell.
        ranks: The average rank of every cell, in the order of the plan.
        graphs: The graphs that have all their runs.
        families: How many families have such a graph.
    """

    chosen: Mapping[str, Setting]
    ranks: tuple[float, ...]
    graphs: tuple[str, ...]
    families: int


def search_result(
    plan: DefaultPlan, results: Path, without: Collection[str] = ()
) -> SearchResult | None:
    """The chosen cell; None where no graph has all its runs.

    Args:
        plan: The plan.
        results: The project's folder of results.
        without: Graphs that are left out.

    Raises:
        UserError: A file cannot be read.
    """
    found: dict[str, np.ndarray] = {}
    for graph in plan.graphs:
        if graph in without:
            continue
        path = results / runs_file(graph)
        ranks = cell_ranks(plan, read_runs(path)) if path.exists() else None
        if ranks is not None:
            found[graph] = ranks
    if not found:
        return None
    by_family = [
        np.mean([found[name] for name in names if name in found], axis=0)
        for names in plan.families.values()
        if any(name in found for name in names)
    ]
    average = np.mean(by_family, axis=0)
    chosen = plan.cells()[int(np.argmin(average))]
    return SearchResult(
        chosen, tuple(map(float, average)), tuple(found), len(by_family)
    )


def cell_ranks(plan: DefaultPlan, runs: Sequence[Run]) -> np.ndarray | None:
    """The rank of every cell on one graph, averaged over baselines; 1 is best.

    None where runs are missing. A cell with a failed run is last. Only validation
    scores are looked at.
    """
    scores: dict[str, list[float]] = {}
    for run in runs:
        if run.seed in plan.run_seeds:
            rule = str(run.config["selection"])
            val = run.scores[rule].val if run.status == "done" else -np.inf
            scores.setdefault(run.config_hash, []).append(val)
    ranks = []
    for method in plan.methods:
        means = []
        for cell in plan.cells():
            key = config_hash(plan.config(cell, method).model_dump(mode="json"))
            if len(scores.get(key, ())) != plan.seeds:
                return None
            means.append(float(np.mean(scores[key])))
        ranks.append(rankdata([-mean for mean in means]))
    return np.asarray(np.mean(ranks, axis=0))
