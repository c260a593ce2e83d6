"""The catalogue: facts about every dataset that can be loaded by name.

They are in `catalog.yaml`; addresses, sizes and checksums of the raw files are in
`files.csv`. Sizes and checksums are empty there where nobody has hashed the file.
"""

from __future__ import annotations

import csv
import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from tempergat.base import UserError, did_you_mean, read_yaml


@dataclass(frozen=True)
class RemoteFile:
    """One file to download.

    Attributes:
        name: Its name in the raw folder.
        url: Where it is published.
        size: Its length in bytes; None where unknown.
        sha256: Its checksum; None where unknown.
        members: For an archive, the files read out of it, named without the archive's
            top folder. A mirror may hold these instead of the archive.
        copies: Names under which others publish the same content: the one file, or
            the files in place of the archive. A folder of the dataset may hold these.
    """

    name: str
    url: str
    size: int | None = None
    sha256: str | None = None
    members: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()


@dataclass(frozen=True)
class Entry:
    """One dataset of the catalogue.

    Attributes:
        name: The name for `load`.
        description: One line on what the graph is.
        reader: The function of `tempergat.data` that reads the raw files, or makes a
            graph without files, such as `"readers.ogb.read_arxiv"`.
        num_nodes: Number of nodes, all types together.
        num_edges: Number of directed edges as loaded, all types together; None where
            it is only known once the graph has been loaded.
        num_features: Features of the classified nodes; None where it is not known.
        num_classes: Number of classes.
        split: Description of the split.
        folders: Where a mirror may keep the files, relative to it.
        files: The raw files; empty for a generated graph.
        arguments: What the reader is told about this dataset.
        metric: The metric its authors report: `"accuracy"`, `"micro_f1"` or
            `"roc_auc"`.
        license: Licence as stated by the source.
        num_splits: Number of official splits; 0 where a split must be made.
        split_sizes: How many nodes of the official split, or of the first of them, are
            for training, validation and testing; empty where it is not known.
        made_split: The split that is made where there is no official one.
        stratified: Whether a split that is made divides every class alike. Those of
            datasets with stored runs do not.
        target: Node type that is classified; None in a homogeneous graph.
        node_types: Number of node types; None where it is not known.
        edge_types: Number of edge types, reverse ones included; None likewise.
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
    reader: str
    num_nodes: int
    num_edges: int | None
    num_features: int | None
    num_classes: int
    split: str
    folders: tuple[str, ...]
    files: tuple[RemoteFile, ...] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict)
    metric: str = "accuracy"
    license: str = "none stated"
    num_splits: int = 1
    split_sizes: tuple[int, ...] = ()
    made_split: str = "60/20/20"
    stratified: bool = False
    target: str | None = None
    node_types: int | None = 1
    edge_types: int | None = 1
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

    def read(self, *paths: object, **options: Any) -> Any:
        """Calls the reader, which is imported here: the catalogue needs no torch.

        Args:
            *paths: The paths of the raw files by name; nothing for a generated graph.
            **options: The dataset's own options.
        """
        module, function = f"tempergat.data.{self.reader}".rsplit(".", 1)
        reader = getattr(importlib.import_module(module), function)
        return reader(*paths, **{**self.arguments, **options})


def read_catalog(catalog: Traversable, files: Traversable) -> dict[str, Entry]:
    """Reads the catalogue.

    Args:
        catalog: The facts.
        files: The table of raw files.

    Raises:
        UserError: A fact is missing or unknown.
    """
    rows: dict[str, list[dict[str, str]]] = {}
    for row in csv.DictReader(files.read_text(encoding="utf-8").splitlines()):
        rows.setdefault(row["dataset"], []).append(row)
    facts = read_yaml(catalog, f"the catalogue {catalog.name}")["datasets"]
    return {name: _entry(name, facts[name], rows) for name in facts}


def _entry(
    name: str, facts: dict[str, Any], rows: Mapping[str, list[dict[str, str]]]
) -> Entry:
    plain: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in facts.items()
    }
    members, copies = plain.pop("members", ()), plain.pop("copies", ())
    swapped = plain.pop("swapped_with", None)
    listed, others = (
        tuple(
            RemoteFile(
                name=row["file"],
                url=row["url"],
                size=int(row["bytes"]) if row["bytes"] else None,
                sha256=row["sha256"] or None,
                members=members,
                copies=copies,
            )
            for row in rows.get(dataset, ())
        )
        for dataset in (plain.get("raw_name", name), swapped)
    )
    try:
        return Entry(name=name, files=listed, swapped_files=others, **plain)
    except TypeError as error:
        raise UserError(f"{name} in the catalogue: {error}; correct it") from error


_FOLDER = resources.files(__package__)
CATALOG: Mapping[str, Entry] = read_catalog(
    _FOLDER / "catalog.yaml", _FOLDER / "files.csv"
)


def find_entry(name: str) -> Entry:
    """The entry of a name. Case does not matter, and neither does - instead of _.

    Raises:
        UserError: There is no such dataset; the message names the nearest ones.
    """
    key = name.lower().replace("_", "-")
    for known, entry in CATALOG.items():
        if known.replace("_", "-") == key:
            return entry
    raise UserError(
        f"there is no dataset {name!r}; {did_you_mean(name, CATALOG)}choose one of "
        "`tempergat data list`, or give the path of your own graph"
    )
