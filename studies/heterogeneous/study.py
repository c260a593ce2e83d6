"""The methods of the paper on graphs with several types: its own, and two by proxy."""

from studies.homogeneous.study import beside_the_paper, paper_stage
from studies.homogeneous.study import look as look_with_changes
from studies.results import read_plan
from studies.runner import UNCHANGED, Changes, Runner, Stage, Stages
from tempergat.comparison.paper import HETEROGENEOUS, PAPER_METHODS
from tempergat.data import load
from tempergat.training import load_recipe

__all__ = ["GRAPHS", "ON_PAGE", "look", "stages"]

PROXY = read_plan("heterogeneous")["proxy"]
# The paper's datasets have no rows, so the page shows the proxy alone.
ON_PAGE = tuple(PROXY["graphs"])
GRAPHS = (*ON_PAGE, *HETEROGENEOUS)


def stages(graph: str) -> Stages:
    """Every method on a graph of the proxy."""
    yield proxy_stage(graph, "heterogeneous/proxy.csv")


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
