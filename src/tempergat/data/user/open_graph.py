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

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from tempergat.base import (
    UserError,
    explain_unreadable,
    listed,
    one_line,
    suggest_one_of,
)
from tempergat.data.dataset import MASKS, UNLABELLED, Dataset, hash_tensors
from tempergat.data.features import note_on_scales, scaling_of
from tempergat.data.layouts.array_folder import is_array_folder, read_array_folder
from tempergat.data.layouts.graphml import read_graphml
from tempergat.data.layouts.npz import read_npz
from tempergat.data.layouts.pyg_objects import from_pyg, read_pt
from tempergat.data.layouts.word_folder import is_word_folder, read_word_folder
from tempergat.data.splits import GraphWithSplits
from tempergat.data.tables.files import not_a_file
from tempergat.data.tables.folder import read_folder
from tempergat.data.tables.typed_folder import is_typed_folder, read_typed_folder
from tempergat.data.user.node_features import telling_features
from tempergat.data.user.options import Problems, ReadOptions, in_python, option_flag
from tempergat.data.user.splits import check_masks, given_masks, numbered_splits
from tempergat.data.user.user_graph import UserGraph
from tempergat.data.user.validate import (
    check_labels,
    count_nodes,
    drop_unused_classes,
    normalise,
    note_on_unseen_classes,
)

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

    Raises:
        UserError: The files are missing or damaged, or the graph contradicts itself.
    """
    options = options or ReadOptions()
    read = read_user_graph(graph, options, Problems(), labelled, use_masks)
    return with_splits(graph, read, options, labelled, use_masks)


def read_user_graph(
    graph: Path | Data | HeteroData,
    options: ReadOptions,
    problems: Problems,
    labelled: bool = True,
    use_masks: bool = True,
) -> UserGraph:
    """Reads a graph as it is given, and checks its labels.

    Args:
        graph: The path or the object.
        options: How it is read.
        problems: Receives what is wrong with it. Where problems are collected, edges
            and features of a folder of arrays are checked in any case.
        labelled: Whether there must be labels; otherwise every label is set to unknown.
        use_masks: Whether a split in tables is read; otherwise it is left out.

    Raises:
        UserError: It cannot be read, or its labels are not classes.
    """
    name = _name_of(graph)
    if isinstance(graph, Path):
        read = _read_files(graph, options, problems, labelled, use_masks)
    else:
        # A model passes on the options of its training graph.
        if labelled:
            refuse_unused_options(graph, options)
        read = from_pyg(name, graph, options)
    target = options.target
    try:
        target = target_type(name, read.data, options.target, labelled)
    except UserError as error:
        if labelled:
            raise
        problems.add(error)
    read = replace(read, target=target)
    if labelled:
        return check_labels(name, read)
    read.store.y = torch.full((count_nodes(name, read.data, target),), UNLABELLED)
    return read


def with_splits(
    graph: Path | Data | HeteroData,
    read: UserGraph,
    options: ReadOptions,
    labelled: bool,
    use_masks: bool,
) -> GraphWithSplits:
    """Normalises a graph that `read_user_graph` returned, in place, and its splits.

    Raises:
        UserError: The graph contradicts itself.
    """
    name = _name_of(graph)
    read = normalise(name, read, options)
    masks: dict[str, Tensor] = {}
    if labelled:
        masks = given_masks(name, read.store) if use_masks else {}
        read = drop_unused_classes(name, read, masks)
        leaks = _note_on_leaks(name, read, masks)
        unseen = note_on_unseen_classes(name, read, masks)
        read = replace(read, notes=(*read.notes, *leaks, *unseen))
    unsplit = replace(
        Dataset(**{field.name: getattr(read, field.name) for field in fields(Dataset)}),
        name=name,
        num_classes=int(read.store.y.max()) + 1 if labelled else 0,
        source=str(graph.resolve()) if isinstance(graph, Path) else "a PyG object",
        read_options=replace(options, **read.learned),
    )
    hashes = hash_tensors(read.data, read.mapped_hashes) | _drop_unused_columns(read)
    unsplit = _with_scaling(unsplit, read, options)
    if not labelled:
        empty = dict.fromkeys(MASKS, np.zeros(len(unsplit.store.y), dtype=bool))
        return GraphWithSplits(unsplit, hashes, ["none"], lambda _: empty)
    numbered = numbered_splits(masks)
    splits = numbered or ([masks] if masks else [])

    def checked_masks(number: int) -> dict[str, np.ndarray]:
        check_masks(name, unsplit.store.y, splits[number])
        return {mask: value.numpy() for mask, value in splits[number].items()}

    words = "given with the graph"
    described = [f"{words}, number {number}" for number in range(len(numbered))]
    return GraphWithSplits(
        unsplit,
        hashes,
        described or [words] * len(splits),
        checked_masks,
        stratified=True,
        is_numbered=bool(numbered),
    )


def _name_of(graph: Path | Data | HeteroData) -> str:
    return str(graph) if isinstance(graph, Path) else OBJECT_NAME


def _with_scaling(unsplit: Dataset, read: UserGraph, options: ReadOptions) -> Dataset:
    """Adds how columns of tables are scaled, or a note on features used as given."""
    # Columns and classes may be called anything.
    notes = tuple(map(one_line, read.notes))
    if not read.has_columns:
        notes += tuple(map(one_line, note_on_scales(unsplit.name, unsplit.data)))
        return replace(unsplit, notes=notes)
    scaling = scaling_of(unsplit.data)
    if options.make_features is not None:
        scaling.pop(".x", None)
    return replace(unsplit, scaling=scaling, notes=notes)


def _note_on_leaks(
    name: str, read: UserGraph, masks: dict[str, Tensor]
) -> tuple[str, ...]:
    """A note where features tell the class of all training nodes."""
    store = read.store
    x = store.get("x")
    if x is None:
        return ()
    known = store.y != UNLABELLED
    if masks:
        known = known & masks[MASKS[0]].reshape(len(known), -1)[:, 0]
    telling, is_alone = telling_features(x, store.y, torch.nonzero(known)[:, 0])
    if not telling:
        return ()
    names = listed([read.column_name("", at) for at in telling])
    what = f"features {names} together tell", "they", "them"
    if is_alone:
        what = f"feature {names} alone tells", "it", "it"
    return (
        f"{name}: the {what[0]} the class of all training nodes, so {what[1]} may be "
        f"the label in other words; leave {what[2]} out with --features "
        f"{in_python('features')}",
    )


def _drop_unused_columns(read: UserGraph) -> dict[str, str]:
    """Removes edge features and weights that were not asked for.

    Returns:
        Lines for the fingerprint. They tell a graph whose edge attributes are used
        from the same graph without: both hold the attributes when they are hashed.
    """
    lines = {}
    for name, columns in (
        ("edge_attr", read.edge_feature_names),
        ("edge_weight", read.edge_weight_name),
    ):
        if columns:
            lines[f"use of {name}"] = f"{name} is {columns}\n"
        elif isinstance(read.data, Data):
            read.data.pop(name, None)
    return lines


def _read_files(
    path: Path,
    options: ReadOptions,
    problems: Problems,
    labelled: bool,
    use_masks: bool,
) -> UserGraph:
    with explain_unreadable(path):
        is_folder, is_file = path.is_dir(), path.is_file()
    if is_folder and is_array_folder(path):
        # A model passes on the options of its training graph.
        if labelled:
            refuse_unused_options(path, options)
        return read_array_folder(path, labelled, verify=problems.collect)
    tables = options
    if not use_masks and options.split_column is None:
        tables = replace(options, split_column="")
    if is_folder and is_word_folder(path):
        return read_word_folder(path, tables, labelled)
    if is_folder and is_typed_folder(path):
        return read_typed_folder(path, tables, problems, labelled)
    if is_folder:
        return read_folder(path, tables, problems, labelled)
    if not is_file:
        kind = not_a_file(path)
        if kind in (None, "missing"):
            raise UserError(f"there is no file or folder {path}; check the path")
        raise UserError(
            f"{path} is {kind}; give a folder of tables, a .npz, .pt or .graphml file"
        )
    if labelled:
        refuse_unused_options(path, options)
    if path.suffix == ".npz":
        return read_npz(path, options, labelled)
    if path.suffix == ".pt":
        return read_pt(path, options)
    if path.suffix == ".graphml":
        return read_graphml(path, tables, problems, labelled)
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
            f"{_name_of(graph)} holds arrays; leave it out"
        )


def target_type(
    source: str, data: Data | HeteroData, target: str | None, labelled: bool = True
) -> str | None:
    """The node type to classify; None in a homogeneous graph.

    Args:
        source: Where the graph came from, for errors.
        data: The graph.
        target: The type that was asked for; None for the one with labels.
        labelled: Whether it must have labels.

    Raises:
        UserError: It is not clear which, there is no such type, or it has no labels.
    """
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
    if target in with_labels or (target is not None and not labelled):
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
