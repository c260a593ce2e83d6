"""The methods of the paper with its settings on graphs with several types."""

from studies.homogeneous.study import paper_stage
from studies.runner import Stages
from tempergat.comparison.paper import HETEROGENEOUS as GRAPHS

__all__ = ["GRAPHS", "stages"]


def stages(graph: str) -> Stages:
    """The paper's table."""
    yield paper_stage(graph, "heterogeneous/runs.csv")
