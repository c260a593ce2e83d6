"""`UserGraph`: what every reader of user files returns."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from torch_geometric.data import Data, HeteroData
from torch_geometric.data.storage import BaseStorage

from tempergat.data.dataset import HowRead, TypeNames


@dataclass(frozen=True)
class UserGraph:
    """A user graph as its files give it.

    Attributes:
        data: The graph. A homogeneous one holds `edge_attr` (float32, edges x columns)
            and `edge_weight` (float32, edges) only where `edge_feature_names` and
            `edge_weight_name` say so.
        target: Node type that is classified; None in a homogeneous graph.
        node_ids: The `id` of each node; None where nodes are numbered.
        class_names: The label of each class; None where the labels are numbers.
        feature_names: The name of each feature; None where they have none.
        label_name: The column that holds the labels.
        split_name: The column that holds the split.
        undirected: Whether the file says that its edges go both ways; None where it
            says nothing.
        keeps_direction: Whether edges are followed as they are listed, like those of
            a PyG object; otherwise a list of one-way edges is taken for an undirected
            graph.
        edge_feature_names: What the columns of `edge_attr` are.
        edge_weight_name: What `edge_weight` is.
        notes: A sentence for each guess or omission that changes results.
        type_names: What tables call the features and nodes of each node type.
        mapped_hashes: sha256 of the edges and features of a graph that are mapped into
            memory; they have been checked, and are used as they are. Empty for all
            other graphs.
        has_columns: Whether the features are columns of tables, which are scaled for
            training; others are used as given.
        how_read: What the files were taken for.
        learned: Options that the tables show, like an `id` that only the edges show;
            a model passes them on.
    """

    data: Data | HeteroData
    target: str | None = None
    node_ids: tuple[str, ...] | None = None
    class_names: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None
    label_name: str | None = None
    split_name: str | None = None
    undirected: bool | None = None
    keeps_direction: bool = False
    edge_feature_names: tuple[str, ...] = ()
    edge_weight_name: str | None = None
    notes: tuple[str, ...] = ()
    type_names: Mapping[str, TypeNames] = field(default_factory=dict)
    mapped_hashes: Mapping[str, str] = field(default_factory=dict)
    has_columns: bool = False
    how_read: HowRead = field(default_factory=HowRead)
    learned: Mapping[str, Any] = field(default_factory=dict)

    @property
    def store(self) -> BaseStorage | Data:
        """The part of the graph that holds the nodes to classify."""
        return self.data if self.target is None else self.data[self.target]

    def not_reading(self, names: Iterable[str]) -> "UserGraph":
        """The graph, where more files, columns or arrays are not used."""
        not_read = (*self.how_read.not_read, *names)
        return replace(self, how_read=replace(self.how_read, not_read=not_read))
