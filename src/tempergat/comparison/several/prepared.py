"""What is known of each graph before the first run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tempergat.base import UserError
from tempergat.comparison.plan import Plan
from tempergat.data import Dataset
from tempergat.training import (
    refuse_other_training,
    refuse_untrainable,
    settings_on,
)


@dataclass(frozen=True)
class Prepared:
    """A graph that is read, and what is compared on it.

    Attributes:
        plan: What to compare; what only the graph can tell is added to its settings.
        graphs: The graph with each of its splits, by the splits' numbers.
    """

    plan: Plan
    graphs: Mapping[int, Dataset]

    def __post_init__(self) -> None:
        configs = tuple(settings_on(c, self.first) for c in self.plan.configs)
        object.__setattr__(self, "plan", replace(self.plan, configs=configs))

    @property
    def first(self) -> Dataset:
        """The graph with the first of its splits."""
        return next(iter(self.graphs.values()))


def check_prepared(prepared: Sequence[Prepared]) -> None:
    """Refuse graphs that cannot be compared, before the first of them is trained on.

    Args:
        prepared: Two graphs or more.

    Raises:
        UserError: A graph is given twice, or cannot be trained on with its settings.
    """
    names: dict[str, str] = {}
    for one in prepared:
        graph = one.first
        identity = graph.graph_fingerprint or graph.fingerprint
        if identity in names:
            raise UserError(
                f"{names[identity]} and {graph.name} are the same graph; give each "
                "graph once"
            )
        names[identity] = graph.name
        for with_split in one.graphs.values():
            refuse_untrainable(with_split)
        for config in one.plan.configs:
            refuse_other_training(graph, config)
