"""The methods of the paper with its settings, and its variants near its baselines."""

from collections.abc import Sequence

from studies.calibration.study import PLAN, Training, near_trainings
from studies.pages import markdown_table
from studies.runner import UNCHANGED, Changes, Runner, Stage, Stages
from tempergat.comparison.paper import HOMOGENEOUS as GRAPHS
from tempergat.comparison.paper import PAPER_METHODS, read_paper
from tempergat.comparison.report.formats import mean_and_std
from tempergat.data import load
from tempergat.nn import METHODS
from tempergat.stats import summarise
from tempergat.training import Run, RunConfig, load_recipe

__all__ = ["GRAPHS", "look", "paper_stage", "stages"]


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


def paper_stage(graph: str, file: str, changes: Changes = UNCHANGED) -> Stage:
    """Every method of the paper with its recipe, over as many seeds as it has."""
    recipe = load_recipe(f"paper/{graph}")
    configs = changes.configs(recipe, PAPER_METHODS, graph)
    return Stage(file, graph, configs, range(changes.runs or recipe.runs))


def look(graph: str, runner: Runner, changes: Changes) -> str:
    """The paper's column of a graph and ours, trained with what the user asks for.

    Args:
        graph: One of the paper's datasets.
        runner: Trains what its store lacks; no file of results is written.
        changes: What differs from the paper's settings.
    """
    runs = runner.train(paper_stage(graph, "", changes), load(graph))
    return beside_the_paper(graph, runs, changes.overrides.words)


def beside_the_paper(graph: str, runs: Sequence[Run], words: str = "") -> str:
    """Each method's mean and standard deviation in the paper and in some runs."""
    rows = []
    for method in dict.fromkeys(run.method for run in runs):
        mine = [run.selected_scores for run in runs if run.method == method]
        tests = [100.0 * scores.test for scores in mine if scores]
        paper = read_paper().get(graph, {}).get(method)
        theirs = "" if paper is None else mean_and_std(paper.mean, paper.std)
        ours = summarise(tests)
        shown = mean_and_std(ours.mean, ours.std)
        rows.append([method, theirs, shown, f"{len(tests)} of {len(mine)}"])
    head = ["method", "the paper", "ours", "finished runs"]
    title = f"# {graph}{words}: test score in percent, mean and standard deviation"
    return f"{title}\n\n{markdown_table(head, rows)}\n"


def _variation(training: Training, graph: str, name: str) -> list[RunConfig]:
    """The variants that have what a variation changes, with the change."""
    changes = PLAN["variations"][name]
    part = "temperature" if "decay_temperature" in changes else "gate"
    return [
        training.config(graph, method).with_changes(**changes)
        for method in PLAN["variants"]
        if getattr(METHODS[method], part)
    ]
