"""Graph transformers with the paper's settings of attention."""

from studies.results import read_plan
from studies.runner import Stage, Stages
from tempergat.training import recipe_for

PLAN = read_plan("transformers")
GRAPHS = tuple(PLAN["datasets"])


def stages(graph: str) -> Stages:
    """Every method over all seeds."""
    _, recipe = recipe_for(graph)
    configs = [recipe.config_for(method) for method in PLAN["methods"]]
    seeds = range(PLAN["first_seed"], PLAN["first_seed"] + PLAN["seeds"])
    yield Stage("transformers/runs.csv", graph, configs, seeds)
