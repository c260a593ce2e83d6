"""The methods of the paper with its settings, and its variants near its baselines."""

from studies.calibration.study import PLAN, Training, near_trainings
from studies.runner import Stage, Stages
from tempergat.comparison.paper import HOMOGENEOUS as GRAPHS
from tempergat.comparison.paper import PAPER_METHODS
from tempergat.nn import METHODS
from tempergat.training import RunConfig, load_recipe

__all__ = ["GRAPHS", "paper_stage", "stages"]


def stages(graph: str) -> Stages:
    """The paper's table; then variants at the trainings nearest to its baselines."""
    yield paper_stage(graph, "homogeneous/runs.csv")
    if graph not in PLAN["datasets"]:
        return
    nearest, *others = near_trainings()
    configs = [
        training.config(graph, method)
        for training in (nearest, *others)
        for method in PLAN["variants"]
    ]
    varied = [
        config
        for name in PLAN["variations"]
        for config in _variation(nearest, graph, name)
    ]
    seeds = range(PLAN["first_seed"], PLAN["first_seed"] + PLAN["seeds"])
    yield Stage(f"calibration/{graph}.csv", graph, [*configs, *varied], seeds)


def paper_stage(graph: str, file: str) -> Stage:
    """Every method of the paper with its recipe, over as many seeds as it has."""
    recipe = load_recipe(f"paper/{graph}")
    configs = [recipe.config_for(method) for method in PAPER_METHODS]
    return Stage(file, graph, configs, range(recipe.runs))


def _variation(training: Training, graph: str, name: str) -> list[RunConfig]:
    """The variants that have what a variation changes, with the change."""
    changes = PLAN["variations"][name]
    part = "temperature" if "decay_temperature" in changes else "gate"
    return [
        training.config(graph, method).with_changes(**changes)
        for method in PLAN["variants"]
        if getattr(METHODS[method], part)
    ]
