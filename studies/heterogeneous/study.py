"""The methods of the paper on graphs with several types: its own, and two by proxy."""

from typing import Any

from studies.homogeneous.study import beside_the_paper, paper_stage
from studies.homogeneous.study import look as look_with_changes
from studies.results import read_csv, read_plan, result_path
from studies.runner import UNCHANGED, Changes, Runner, Stage, Stages
from tempergat.base import csv_text, write_into
from tempergat.comparison.paper import HETEROGENEOUS, PAPER_METHODS
from tempergat.data import load
from tempergat.data.homophily_measures import estimate_h2_index
from tempergat.training import load_recipe

__all__ = ["GRAPHS", "ON_PAGE", "look", "stages"]

INDICES = "heterogeneous/h2_index.csv"
PROXY = read_plan("heterogeneous")["proxy"]
# The paper's datasets have no rows, so the page shows the proxy alone.
ON_PAGE = tuple(PROXY["graphs"])
GRAPHS = (*ON_PAGE, *HETEROGENEOUS)


def stages(graph: str) -> Stages:
    """Every method on a graph of the proxy, whose H2Index is a row of its own."""
    yield proxy_stage(graph, "heterogeneous/runs.csv")
    path = result_path(INDICES)
    rows = read_csv(INDICES).to_dict("records") if path.exists() else []
    if graph not in {row["dataset"] for row in rows}:
        every = sorted([*rows, h2_indices(graph)], key=lambda row: row["dataset"])
        write_into(path.parent, path.name, csv_text(every))
        read_csv.cache_clear()


def h2_indices(graph: str) -> dict[str, Any]:
    """The H2Index of a graph without unlabelled nodes, and with a class for each."""
    dataset = load(graph)
    row: dict[str, Any] = {"dataset": graph}
    for unlabelled in ("left out", "random"):
        found = estimate_h2_index(dataset.data, dataset.target, 0, unlabelled)
        row[unlabelled], row[f"error, {unlabelled}"] = found or (None, None)
    return row


def proxy_stage(graph: str, file: str, changes: Changes = UNCHANGED) -> Stage:
    """The paper's methods and the plan's others with the recipe of the proxy."""
    methods = [*PROXY["more_methods"], *PAPER_METHODS]
    configs = changes.configs(load_recipe(PROXY["recipe"]), methods, graph)
    first = PROXY["first_seed"]
    return Stage(
        file, graph, configs, range(first, first + (changes.runs or PROXY["seeds"]))
    )


def look(graph: str, runner: Runner, changes: Changes) -> str:
    """The paper's column of a graph and ours.

    Args:
        graph: One of the paper's datasets, or of the proxy's.
        runner: Trains what is missing. Without changes the runs are rows of
            results/runs.csv.bz2, with others they stay in its store.
        changes: What differs from the settings of the plan.
    """
    if graph in ON_PAGE:
        runs = runner.train(proxy_stage(graph, "", changes), load(graph))
        return beside_the_paper(graph, runs, changes.overrides.words)
    if changes:
        return look_with_changes(graph, runner, changes)
    stage = paper_stage(graph, "heterogeneous/runs.csv")
    return beside_the_paper(graph, runner.finish(stage))
