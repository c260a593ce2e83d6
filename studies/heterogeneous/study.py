"""The methods of the paper with its settings on graphs with several types."""

from studies.homogeneous.study import beside_the_paper, paper_stage
from studies.homogeneous.study import look as look_with_changes
from studies.runner import Changes, Runner
from tempergat.comparison.paper import HETEROGENEOUS as GRAPHS

__all__ = ["GRAPHS", "look"]


def look(graph: str, runner: Runner, changes: Changes) -> str:
    """The paper's column of a graph and ours.

    Args:
        graph: One of the paper's datasets.
        runner: Trains what is missing. With the paper's settings the runs are rows of
            results/runs.csv.bz2, with others they stay in its store.
        changes: What differs from the paper's settings.
    """
    if changes:
        return look_with_changes(graph, runner, changes)
    stage = paper_stage(graph, "heterogeneous/runs.csv")
    return beside_the_paper(graph, runner.finish(stage))
