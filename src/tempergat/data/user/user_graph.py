"""What every reader of user graphs returns."""

from dataclasses import dataclass

from torch_geometric.data import Data, HeteroData


@dataclass(frozen=True)
class UserGraph:
    """A user graph as its files give it.

    Attributes:
        data: The graph.
        node_ids: The `id` of each node; None where nodes are numbered.
        class_names: The label of each class; None where the labels are numbers.
    """

    data: Data | HeteroData
    node_ids: tuple[str, ...] | None = None
    class_names: tuple[str, ...] | None = None
