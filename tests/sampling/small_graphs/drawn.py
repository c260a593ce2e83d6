"""Sets of small graphs with attributes of many kinds, and what a set is made of."""

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data, InMemoryDataset


class OwnData(Data):
    """Pairs of graphs as in PyG's tutorial, and attributes that are stacked."""

    def __inc__(self, key: str, value: Any, *args: Any, **kwargs: Any) -> Any:
        if key == "edge_index_s":
            return self.x_s.size(0)
        if key == "edge_index_t":
            return torch.tensor([[self.x_s.size(0)], [self.x_t.size(0)]])
        if key == "pairs":
            return torch.tensor([[self.x_s.size(0), self.x_t.size(0)]])
        return super().__inc__(key, value, *args, **kwargs)

    def __cat_dim__(self, key: str, value: Any, *args: Any, **kwargs: Any) -> Any:
        if key == "whole":
            return None
        return 1 if key == "columns" else super().__cat_dim__(key, value)


class InMemory(InMemoryDataset):
    """A data set of graphs as PyG concatenates them."""

    def __init__(self, graphs: list[Data]) -> None:
        super().__init__()
        self.data, self.slices = self.collate(graphs)


def edges(nodes: int, count: int, kind: torch.dtype = torch.int64) -> Tensor:
    """Edges in no order, with repeats and self-loops; none without nodes."""
    return torch.randint(max(nodes, 1), (2, count if nodes else 0), dtype=kind)


def small_graph(number: int, nodes: int, links: int) -> Data:
    """A graph with features of nodes and edges, a target and its number."""
    ends = edges(nodes, links)
    return Data(
        x=torch.randn(nodes, 3, dtype=torch.float64),
        edge_index=ends,
        edge_attr=torch.randn(ends.size(1), 2, dtype=torch.float64),
        y=torch.randn(1, 1, dtype=torch.float64),
        number=number,
    )


def small_graphs(count: int) -> list[Data]:
    """Graphs of 1 to 7 nodes, a few of them without edges."""
    return [small_graph(k, 1 + k * 5 % 7, k * 3 % 8) for k in range(count)]


def numbers_of(batches: Any) -> list[list[int]]:
    """The numbers of the graphs of each batch."""
    return [batch.number.tolist() for batch in batches]
