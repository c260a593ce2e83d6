"""Candidates for the default recipe with the baselines, and two with `mlp`."""

from typing import Any

from studies.results import read_plan
from studies.runner import Stage, Stages
from studies.when.study import generate, load_real
from tempergat.training import RunConfig, load_recipe

PLAN = read_plan("default")
REAL = tuple(graph["name"] for graph in read_plan("when")["real"]["graphs"])
GRAPHS = (*REAL, "generated")


def stages(graph: str) -> Stages:
    """Every cell with every baseline, on the splits of the graph in turn; then mlp.

    On the generated graphs, the two recipes with every baseline.
    """
    if graph == "generated":
        yield from _unseen()
        return
    cells = [PLAN["present"], *PLAN["candidates"], *PLAN["only_measured"]]
    configs = [_config(cell, name) for name in PLAN["methods"] for cell in cells]
    seeds = range(PLAN["first_seed"], PLAN["first_seed"] + PLAN["seeds"])
    yield Stage(f"default/{graph}.csv", graph, configs, seeds, load_real)
    recipes = [PLAN["present"], PLAN["candidates"][-1]]
    configs = [_config(cell, PLAN["without_edges"]) for cell in recipes]
    yield Stage("default/mlp.csv", graph, configs, seeds, load_real)


def _unseen() -> Stages:
    """Both recipes with every baseline on graphs that had no part in the rule."""
    cells = [PLAN["present"], PLAN["candidates"][-1]]
    configs = [_config(cell, name) for name in PLAN["methods"] for cell in cells]
    seeds = range(PLAN["first_seed"], PLAN["first_seed"] + PLAN["seeds"])
    for name in PLAN["unseen"]["graphs"]:
        yield Stage("default/generated.csv", name, configs, seeds, generate)


def _config(cell: dict[str, Any], method: str) -> RunConfig:
    """The settings of a baseline in a cell, whose dropout is that of every kind."""
    changes = {name: value for name, value in cell.items() if name != "dropout"}
    changes["feature_dropout"] = cell["dropout"]
    if method not in ("gcn", "mlp"):
        changes["attention_dropout"] = cell["dropout"]
    return load_recipe(PLAN["base"]).config_for(method).with_changes(**changes)
