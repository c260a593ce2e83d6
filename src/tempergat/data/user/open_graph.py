"""User graphs: a folder of tables, an .npz, .pt or .graphml file, or a PyG object.

A folder holds `nodes.csv` and `edges.csv` (or .tsv, .csv.gz, .parquet). In `nodes`, the
column `label` is the class (a whole number or a word; empty or a word for a missing
value where unknown), `id` names the node, `split` is train, val, test or empty, and
every other column is a feature. In `edges`, the columns `source` and `target` name
nodes; others are used if the options name them. Other common names, like `node_id`,
`y`, `is_train` or `src`, are understood where it is clear what they are, and are a
question otherwise. Without an id, the column that differs in every row and holds every
end of every edge names the nodes, or else their row number from 0. Instead of the
column, the split may be a table `split.csv` with `id` and `split`, or the tables
`train.csv`, `val.csv` and `test.csv` of ids.

A folder of a typed graph holds `nodes_<type>.csv` for each node type and
`edges_<source type>__<relation>__<target type>.csv` for each edge type; one of the node
types has labels.

An .npz holds `edge_index` (2 x edges), `x`, `y` (-1 where unknown), and may hold
`train_mask`, `val_mask`, `test_mask` (or nodes in `train_idx` and the like),
`edge_attr` and `edge_weight`, or it has one of the two layouts of
`layouts.npz`. A .pt holds a PyG `Data`, `HeteroData` or `Batch` with the same
attributes, or a saved dataset of one graph, and is read without running code. In a
.graphml, attributes of nodes and edges are columns. A folder of `edges.csv`,
`features.json` and `target.csv` is the published layout of `layouts.word_folder`.
A folder with `edge_index.npy` is that of a large graph, see `array_folder`.
"""

import os
from dataclasses import replace
from pathlib import Path

import torch
from torch_geometric.data import Data, HeteroData

from tempergat.base import (
    UserError,
    explain_unreadable,
    printable,
    suggest_one_of,
)
from tempergat.data.dataset import UNLABELLED
from tempergat.data.features import set_layout
from tempergat.data.layouts.array_folder import is_array_folder, read_array_folder
from tempergat.data.layouts.graphml import read_graphml
from tempergat.data.layouts.npz import read_npz
from tempergat.data.layouts.pyg_objects import from_pyg, read_pt
from tempergat.data.layouts.word_folder import is_word_folder, read_word_folder
from tempergat.data.splits import GraphWithSplits
from tempergat.data.tables.files import not_a_file
from tempergat.data.tables.folder import read_folder
from tempergat.data.tables.typed_folder import is_typed_folder, read_typed_folder
from tempergat.data.user.labels import check_labels
from tempergat.data.user.normalise import with_splits
from tempergat.data.user.options import ReadOptions, in_python, option_flag
from tempergat.data.user.reading import Reading, UserGraph
from tempergat.data.user.validate import count_nodes

USER_SUFFIXES = (".pt", ".npz", ".graphml")
# Name of a graph that is given as a PyG object, which has no name.
OBJECT_NAME = "graph"
_ARRAY_OPTIONS = ("directed", "make_features", "edge_features", "edge_weight", "target")


def open_user_graph(
    graph: Path | Data | HeteroData,
    *,
    options: ReadOptions | None = None,
    labelled: bool = True,
    use_masks: bool = True,
    sparse: str | bool | None = None,
) -> GraphWithSplits:
    """Reads and checks a user graph.

    Args:
        graph: A folder of tables, an `.npz`, a `.pt`, a `.graphml`, or a PyG object,
            which is not changed.
        options: How it is read; the defaults when left out.
        labelled: Whether the graph needs labels. Without, its labels and masks are
            not used.
        use_masks: Whether the masks of the graph are its splits; otherwise a split is
            made.
        sparse: The layout of its features, as in `load`; None keeps that of the files.

    Raises:
        UserError: The files are missing or damaged, or the graph contradicts itself.
    """
    options = options or ReadOptions()
    reading = Reading(name_of(graph), options, labelled, use_masks)
    read = read_user_graph(graph, reading)
    opened = with_splits(read, reading)
    # Measuring the density of mapped features would read all of them.
    if sparse is not None and not (read.mapped_hashes and sparse == "auto"):
        set_layout(opened.unsplit.data, sparse)
    return opened


def name_of(graph: Path | Data | HeteroData) -> str:
    """What errors and notes call a graph."""
    return str(graph) if isinstance(graph, Path) else OBJECT_NAME


def short_name(path: Path) -> str:
    """The name of a file without its suffix, or of a folder, as tables show it.

    Bytes in it that are not text, and control characters, are replaced: tables,
    pictures and terminals cannot show them.
    """
    path = path.resolve()
    if path.is_dir():
        name = path.name or OBJECT_NAME
    else:
        name = (path.with_suffix("") if path.suffix == ".gz" else path).stem
    return printable(os.fsencode(name).decode(errors="replace"))


def read_user_graph(graph: Path | Data | HeteroData, reading: Reading) -> UserGraph:
    """Reads a graph as it is given, and checks its labels.

    Args:
        graph: The path or the object.
        reading: How it is read. Where problems are collected, edges and features of a
            folder of arrays are checked in any case. Without labels, every label is
            set to unknown.

    Raises:
        UserError: It cannot be read, or its labels are not classes.
    """
    source = "a PyG object"
    if isinstance(graph, Path):
        read, source = _read_files(graph, reading), str(graph.resolve())
    else:
        # A model passes on the options of its training graph.
        if reading.labelled:
            refuse_unused_options(graph, reading.options)
        read = from_pyg(graph, reading)
    target = reading.options.target
    try:
        target = _target_type(read.data, reading)
    except UserError as error:
        if reading.labelled:
            raise
        reading.problem(error)
    read = replace(read, target=target, source=source)
    if reading.labelled:
        # Those of a table have become classes with it.
        return check_labels(read, reading) if read.label_name is None else read
    count = count_nodes(reading.name, read.data, target)
    read.store.y = torch.full((count,), UNLABELLED)
    return read


def _read_files(path: Path, reading: Reading) -> UserGraph:
    with explain_unreadable(path):
        is_folder, is_file = path.is_dir(), path.is_file()
    if not is_folder and not is_file:
        kind = not_a_file(path)
        if kind in (None, "missing"):
            raise UserError(f"there is no file or folder {path}; check the path")
        raise UserError(
            f"{path} is {kind}; give a folder of tables, a .npz, .pt or .graphml file"
        )
    # A model passes on the options of its training graph.
    if reading.labelled:
        refuse_unused_options(path, reading.options)
    tables = reading
    if not reading.use_masks and reading.options.split_column is None:
        tables = reading.with_options(split_column="")
    if is_folder:
        if is_array_folder(path):
            return read_array_folder(path, reading)
        if is_word_folder(path):
            return read_word_folder(path, tables)
        if is_typed_folder(path):
            return read_typed_folder(path, tables)
        return read_folder(path, tables)
    if path.suffix == ".npz":
        return read_npz(path, reading)
    if path.suffix == ".pt":
        return read_pt(path, reading)
    if path.suffix == ".graphml":
        return read_graphml(path, tables)
    raise UserError(
        f"{path} is neither a folder with nodes.csv and edges.csv nor a .npz, .pt "
        "or .graphml file; save the graph as one of these"
    )


def refuse_unused_options(
    graph: Path | Data | HeteroData, options: ReadOptions
) -> None:
    """Refuses options about the columns of tables for a graph that has no tables.

    Raises:
        UserError: Such an option is given.
    """
    given = options.given()
    if isinstance(graph, Path):
        if given and is_array_folder(graph):
            raise UserError(
                f"{option_flag(given[0])} does not apply to {graph}, whose arrays are "
                "used as they are; leave it out"
            )
        if graph.is_dir() or graph.suffix not in (".pt", ".npz"):
            return
    given = [name for name in given if name not in _ARRAY_OPTIONS]
    if given:
        raise UserError(
            f"{option_flag(given[0])} is about the columns of tables, but "
            f"{name_of(graph)} holds arrays; leave it out"
        )


def _target_type(data: Data | HeteroData, reading: Reading) -> str | None:
    """The node type to classify; None in a homogeneous graph.

    Without an option it is the one with labels.

    Raises:
        UserError: It is not clear which, there is no such type, or it has no labels.
    """
    source, target = reading.name, reading.options.target
    if isinstance(data, Data):
        if target is not None:
            raise UserError(
                f"target is {target!r}, but {source} has no node types; leave it out"
            )
        return None
    if target is not None and target not in data.node_types:
        raise UserError(
            f"target is {target!r}, but {source} has no such node type; "
            f"{suggest_one_of(target, data.node_types)}"
        )
    with_labels = [kind for kind in data.node_types if "y" in data[kind]]
    if target is None and len(with_labels) == 1:
        return str(with_labels[0])
    if target in with_labels or (target is not None and not reading.labelled):
        return target
    labelled_types = ", ".join(with_labels) or "none"
    if target is not None:
        raise UserError(
            f"target is {target!r}, but {source} has no y for that node type; types "
            f"with labels: {labelled_types}"
        )
    raise UserError(
        f"{source} has labels for {labelled_types} of the node types "
        f"{', '.join(data.node_types)}; give the one to classify a y, or choose it "
        f"with --target {in_python('target')}"
    )
