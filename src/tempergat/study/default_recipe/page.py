"""docs/default.md: the cells of the search by their average rank."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import rankdata

from tempergat.base import UserError, write_text
from tempergat.study.default_recipe.plan import (
    DefaultPlan,
    load_default_plan,
    runs_file,
)
from tempergat.study.engine import Run, config_hash, read_runs
from tempergat.study.report import filled, markdown_rows
from tempergat.study.search import Setting


@dataclass(frozen=True)
class DefaultReport:
    """What the search found.

    Attributes:
        chosen: The settings of the best cell.
        ranks: The average rank of every cell, in the order of the plan.
        graphs: The graphs that have all their runs.
        page: Where the page is.
    """

    chosen: Mapping[str, Setting]
    ranks: tuple[float, ...]
    graphs: tuple[str, ...]
    page: Path


def reproduce_default(results: Path, docs: Path) -> DefaultReport:
    """Write docs/default.md from the plan and the runs in results/default_recipe/.

    Args:
        results: The project's folder of results.
        docs: Where the page goes.

    Raises:
        UserError: No graph has all its runs, or a file cannot be read.
    """
    plan = load_default_plan(results)
    found: dict[str, np.ndarray] = {}
    for graph in plan.graphs:
        path = results / runs_file(graph)
        ranks = cell_ranks(plan, read_runs(path)) if path.exists() else None
        if ranks is not None:
            found[graph] = ranks
    if not found:
        raise UserError(
            "no graph of the search for the default recipe has all its runs; train "
            "them with `tempergat reproduce default --run`"
        )
    average = np.mean(
        [
            np.mean([found[name] for name in names if name in found], axis=0)
            for names in plan.families.values()
            if any(name in found for name in names)
        ],
        axis=0,
    )
    cells = plan.cells()
    chosen = cells[int(np.argmin(average))]
    page = docs / "default.md"
    write_text(page, filled(_text(plan, cells, average, list(found))))
    return DefaultReport(chosen, tuple(map(float, average)), tuple(found), page)


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


def _text(
    plan: DefaultPlan,
    cells: Sequence[Mapping[str, Setting]],
    average: np.ndarray,
    graphs: Sequence[str],
) -> str:
    order = np.argsort(average, kind="stable")
    rows = [
        [*(str(value) for value in cells[i].values()), f"{average[i]:.2f}"]
        for i in order
    ]
    missing = [name for name in plan.graphs if name not in graphs]
    without = (
        f" Graphs without all their runs: {', '.join(missing)}." if missing else ""
    )
    return (
        "# The search for the default recipe\n\n"
        "This page is made by `tempergat reproduce default` from "
        "results/default_recipe/; do not edit it by hand. The plan there says what was "
        f"tried on {', '.join(plan.methods)} and how a cell is chosen: by its average "
        f"rank in validation score, on {', '.join(graphs)}.{without}\n\n"
        + markdown_rows([*plan.grid, "average rank"], rows)
    )
