"""One dataset of the catalogue: the facts about it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tempergat.data.catalog.files import RemoteFile

# The catalogue is shown without torch.
if TYPE_CHECKING:
    from torch_geometric.data import Data, HeteroData

    from tempergat.data.splits import GraphWithSplits


def on_first_use(function: str) -> Callable[..., Any]:
    """A function of `tempergat.data` that is imported when it is first called.

    Args:
        function: Its module and name, such as `"readers.ogb.read_arxiv"`.
    """
    module, name = f"tempergat.data.{function}".rsplit(".", 1)

    def call(*arguments: Any, **options: Any) -> Any:
        return getattr(importlib.import_module(module), name)(*arguments, **options)

    return call


@dataclass(frozen=True)
class Entry:
    """One dataset of the catalogue.

    Attributes:
        name: The name for `load`.
        description: One line on what the graph is.
        files: The raw files; empty for a generated graph.
        folders: Where a mirror may keep the files, relative to it.
        num_nodes: Number of nodes, all types together.
        num_edges: Number of directed edges as loaded, all types together; None where
            it is only known once the graph has been loaded.
        num_features: Features of the classified nodes.
        num_classes: Number of classes.
        reader: Reads the raw files; takes their paths by name and the dataset's
            options.
        generator: Samples a graph that has no files; takes the dataset's options.
        metric: The metric its authors report: `"accuracy"`, `"micro_f1"` or
            `"roc_auc"`.
        license: Licence as stated by the source.
        split: Description of the split.
        num_splits: Number of official splits; 0 where a split must be made.
        made_split: The split that is made where there is no official one.
        stratified: Whether a split that is made divides every class alike. Those of
            datasets with stored runs do not.
        target: Node type that is classified; None in a homogeneous graph.
        node_types: Number of node types.
        edge_types: Number of edge types, reverse ones included.
        paper_edges: The count the paper prints, where it differs from `num_edges`.
        h2_index: The H2Index the paper prints.
        keep_processed: Whether the graph is kept as memory-mapped arrays.
        raw_name: The dataset whose raw files these are, where it is another one.
        swapped_files: Files to try if `files` hold the graph of another dataset.
        options: Options of `load` this dataset takes beside the common ones.
        recipe: Recipe it is trained with, where that is not called like the dataset.
        note: What else a user should know.
    """

    name: str
    description: str
    files: tuple[RemoteFile, ...]
    folders: tuple[str, ...]
    num_nodes: int
    num_edges: int | None
    num_features: int
    num_classes: int
    reader: Callable[..., Data | HeteroData] | None = None
    generator: Callable[..., GraphWithSplits] | None = None
    metric: str = "accuracy"
    license: str = "none stated"
    split: str = ""
    num_splits: int = 1
    made_split: str = "60/20/20"
    stratified: bool = False
    target: str | None = None
    node_types: int = 1
    edge_types: int = 1
    paper_edges: int | None = None
    h2_index: float | None = None
    keep_processed: bool = False
    raw_name: str = ""
    swapped_files: tuple[RemoteFile, ...] = ()
    options: tuple[str, ...] = ()
    recipe: str = ""
    note: str = ""

    @property
    def raw_folder(self) -> str:
        """The folder under the data root that holds the raw files."""
        return f"{self.raw_name or self.name}/raw"

    @property
    def download_bytes(self) -> int | None:
        """Size of all files together, or None where one is unknown."""
        sizes = [file.size for file in self.files]
        return None if None in sizes else sum(size for size in sizes if size)
