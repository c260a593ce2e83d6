"""`UserGraph`: what every reader of user files returns."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tempergat.data.dataset import Dataset, HowRead


@dataclass(frozen=True, kw_only=True)
class UserGraph(Dataset):
    """A graph as its files give it, before it is checked and has a split.

    The attributes of `Dataset` that a reader does not know keep the values below.
    `undirected` is what the file says about its edges; None where it says nothing. A
    homogeneous graph holds `edge_attr` (float32, edges x columns) and `edge_weight`
    (float32, edges) only where `edge_feature_names` and `edge_weight_name` say so.

    Attributes:
        how_read: What the files were taken for.
        keeps_direction: Whether edges are followed as they are listed, like those of
            a PyG object; otherwise a list of one-way edges is taken for an undirected
            graph.
        mapped_hashes: sha256 of the edges and features of a graph that are mapped into
            memory; they have been checked, and are used as they are. Empty for all
            other graphs.
        has_columns: Whether the features are columns of tables, which are scaled for
            training; others are used as given.
        learned: Options that the tables show, like an `id` that only the edges show;
            a model passes them on.
    """

    name: str = ""
    target: str | None = None
    num_classes: int = 0
    metric: str = "accuracy"
    source: str = ""
    fingerprint: str = ""
    license: str = "the user's"
    how_read: HowRead = field(default_factory=HowRead)
    keeps_direction: bool = False
    mapped_hashes: Mapping[str, str] = field(default_factory=dict)
    has_columns: bool = False
    learned: Mapping[str, Any] = field(default_factory=dict)

    def not_reading(self, names: Iterable[str]) -> "UserGraph":
        """The graph, where more files, columns or arrays are not used."""
        not_read = (*self.how_read.not_read, *names)
        return replace(self, how_read=replace(self.how_read, not_read=not_read))
