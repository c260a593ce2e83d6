"""Reads a folder of tables into a PyG graph."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.data.storage import BaseStorage

from tempergat.base import UserError, explain_unreadable
from tempergat.data.dataset import MASKS
from tempergat.data.user.edge_columns import EdgeColumns, choose_edge_columns
from tempergat.data.user.labels import classes_of_texts
from tempergat.data.user.options import ReadOptions, in_python
from tempergat.data.user.tables.columns import edge_ends
from tempergat.data.user.tables.files import find_table, iter_tables, read_table
from tempergat.data.user.tables.nodes import Nodes, read_nodes
from tempergat.data.user.tables.table import (
    Table,
    as_known_text,
    as_numbers,
    as_text,
    missing_words,
)
from tempergat.data.user.user_graph import UserGraph

_SPLIT_NAMES = {
    "train": MASKS[0],
    "training": MASKS[0],
    "val": MASKS[1],
    "valid": MASKS[1],
    "validation": MASKS[1],
    "dev": MASKS[1],
    "test": MASKS[2],
    "testing": MASKS[2],
}


def read_folder(
    folder: Path,
    options: ReadOptions,
    require_finite: bool = True,
    labelled: bool = True,
) -> UserGraph:
    """Reads `nodes`, `edges` and, where there is one, `split`.

    Args:
        folder: Where the tables are.
        options: How they are read.
        require_finite: Whether NaN and infinity are refused as features.
        labelled: Whether some node must have a label; otherwise labels and splits are
            not read.

    Raises:
        UserError: A table is missing or contradicts another; file and row are named.
    """
    node_table = _require_table(folder, "nodes")
    edge_table = _require_table(folder, "edges")
    pieces = iter_tables(node_table)
    nodes = read_nodes(node_table, pieces, options, require_finite, labelled)
    pieces = iter_tables(edge_table)
    split = find_table(folder, "split")
    return join_tables(nodes, edge_table, pieces, split, options, labelled)


def join_tables(
    nodes: Nodes,
    edge_path: Path,
    edges: Iterable[Table],
    split: Path | None,
    options: ReadOptions,
    labelled: bool,
) -> UserGraph:
    """Makes a graph of the tables of nodes and edges.

    Args:
        nodes: The nodes.
        edge_path: The file of the edges.
        edges: The table of the edges, in pieces.
        split: The table of the split, where there is one.
        options: How the tables are read.
        labelled: Whether labels and splits are read.

    Raises:
        UserError: A table contradicts another; file and row are named.
    """
    data = Data(num_nodes=len(nodes))
    if nodes.features is not None:
        data.x = torch.from_numpy(nodes.features)
    graph = with_targets(data, data, nodes, split, options, labelled)
    edge_index, columns = _read_edges(edge_path, edges, nodes, options)
    data.edge_index = torch.from_numpy(edge_index)
    return columns.added_to(graph)


def with_targets(
    data: Data | HeteroData,
    store: BaseStorage | Data,
    nodes: Nodes,
    split: Path | None,
    options: ReadOptions,
    labelled: bool,
) -> UserGraph:
    """Adds labels and masks to a graph, and what is known of the nodes to classify.

    Args:
        data: The graph.
        store: The part of it that holds the nodes to classify.
        nodes: These nodes.
        split: The table of the split, where there is one.
        options: How the tables are read.
        labelled: Whether the split is read.

    Raises:
        UserError: The labels or the split contradict themselves.
    """
    class_names = None
    notes: tuple[str, ...] = ()
    if nodes.labels is not None:
        found = classes_of_texts(str(nodes.path), nodes.labels, nodes.at)
        store.y, class_names, notes = torch.from_numpy(found[0]), found[1], found[2]
    if labelled:
        for name, mask in masks_of(split, nodes, options).items():
            store[name] = torch.from_numpy(mask)
    return UserGraph(
        data,
        node_ids=None if nodes.columns.id is None else tuple(nodes.positions),
        class_names=class_names,
        feature_names=nodes.feature_names if nodes.features is not None else None,
        label_name=nodes.columns.label,
        split_name=nodes.columns.split,
        notes=notes,
        has_columns=True,
    )


def _require_table(folder: Path, name: str) -> Path:
    path = find_table(folder, name)
    if path is None:
        with explain_unreadable(folder):
            found = sorted(entry.name for entry in folder.iterdir())
        listed = ", ".join(found[:5]) + (", ..." if len(found) > 5 else "")
        raise UserError(
            f"{folder} has no {name}.csv, .tsv, .csv.gz or .parquet; it holds "
            f"{listed or 'nothing'}, but a graph needs nodes and edges"
        )
    return path


def _read_edges(
    path: Path, pieces: Iterable[Table], nodes: Nodes, options: ReadOptions
) -> tuple[np.ndarray, EdgeColumns]:
    """The edges, and the columns of them that were asked for."""
    asked = {*options.edge_features, options.edge_weight}
    missing = missing_words(options)
    ends: list[np.ndarray] = []
    parts: dict[str, list[np.ndarray]] = {}
    names: list[str] = []
    for piece in pieces:
        _refuse_missing_header(piece, nodes)
        columns = edge_ends(piece)
        names = [name for name in piece.columns if name not in columns]
        try:
            rows = [node_rows(piece, column, nodes) for column in columns]
        except UserError:
            _refuse_counting_from_one(piece, columns, nodes)
            raise
        ends.append(np.stack(rows))
        for name in names:
            if name in asked:
                remedy = "make it numbers, or leave it out"
                values = as_numbers(piece, name, missing, True, remedy)
                parts.setdefault(name, []).append(values)
    chosen = choose_edge_columns(
        str(path), names, lambda name: np.concatenate(parts[name]), options
    )
    return np.concatenate(ends, axis=1), chosen


def _refuse_counting_from_one(
    table: Table, columns: tuple[str, str], nodes: Nodes
) -> None:
    """Says so where edges seem to number the nodes from 1."""
    ends = [text for name in columns for text in as_text(table.columns[name])]
    if nodes.columns.id is not None or not all(map(str.isdecimal, ends)):
        return
    numbers = np.array(ends, dtype=np.float64)
    if numbers.min() == 1 and numbers.max() == len(nodes):
        raise UserError(
            f"{table.path}: {columns[0]} and {columns[1]} seem to count the "
            f"{len(nodes)} nodes from 1, but rows of {nodes.path.name} are numbered "
            f"from 0; subtract 1, or give {nodes.path.name} a column id"
        )


def _refuse_missing_header(table: Table, nodes: Nodes) -> None:
    header = list(table.columns)
    if len(header) >= 2 and all(
        _position(name, nodes) is not None for name in header[:2]
    ):
        raise UserError(
            f"{table.path} begins with {header[0]}, {header[1]}, which are nodes; its "
            "first line must name the columns: source,target"
        )


def _position(name: str, nodes: Nodes) -> int | None:
    """The node of an id. Other programs save whole numbers as 3.0, and read 3."""
    for spelled in (name, name.removesuffix(".0"), f"{name}.0"):
        if spelled in nodes.positions:
            return nodes.positions[spelled]
    return None


def node_rows(table: Table, column: str, nodes: Nodes) -> np.ndarray:
    """The nodes that a column names.

    Raises:
        UserError: There is no such node; file and row are named.
    """
    identifiers = as_text(table.columns[column])
    found = list(map(nodes.positions.get, identifiers))
    if None in found:
        for row, node in enumerate(found):
            if node is None:
                found[row] = _position(identifiers[row], nodes)
    if None in found:
        row = found.index(None)
        raise UserError(
            f"{table.at(row)}: {column} is {identifiers[row]!r}, but "
            f"{nodes.path.name} has no such node among its {len(nodes)}"
            f"{_numbering(nodes)}; add the node or drop the row"
        )
    return np.array(found, dtype=np.int64)


def _numbering(nodes: Nodes) -> str:
    if nodes.columns.id is not None:
        return f" (by {nodes.columns.id})"
    return f" (numbered from 0; --id names a column of ids {in_python('id')})"


def masks_of(
    path: Path | None, nodes: Nodes, options: ReadOptions
) -> dict[str, np.ndarray]:
    """The masks of a split; none where none is given.

    Args:
        path: The table of the split; None where there is none.
        nodes: The nodes, whose table may hold the split in its columns.
        options: How the tables are read.

    Raises:
        UserError: The split is given twice, or a node is in two parts.
    """
    given = nodes.splits is not None or bool(nodes.masks)
    if path is not None and given:
        column = nodes.columns.split or next(iter(nodes.columns.masks.values()))
        raise UserError(
            f"{nodes.path} has a column {column} and there is a {path.name} too; keep "
            "one"
        )
    if nodes.masks:
        return nodes.masks
    masks = {name: np.zeros(len(nodes), dtype=bool) for name in MASKS}
    if path is not None:
        table = read_table(path)
        for column in ("id", "split"):
            if column not in table.columns:
                raise UserError(
                    f"{path} has no column {column}, only "
                    f"{', '.join(table.columns)}; it needs id and split"
                )
        owners = node_rows(table, "id", nodes)
        words = as_known_text(table.columns["split"], missing_words(options))
        _assign(masks, table, owners, words, "split")
        return masks
    if nodes.splits is not None:
        owners = np.arange(len(nodes))
        _assign(masks, nodes, owners, nodes.splits, nodes.columns.split or "split")
        return masks
    return {}


def _assign(
    masks: dict[str, np.ndarray],
    table: Table | Nodes,
    owners: np.ndarray,
    words: np.ndarray,
    column: str,
) -> None:
    """Puts the node of each row into the split that the row names."""
    for row, word in enumerate(words):
        if word == "":
            continue
        mask = _SPLIT_NAMES.get(word.lower())
        if mask is None:
            raise UserError(
                f"{table.at(row)}: {column} is {word!r}; write train, val, test or "
                f"nothing, or choose another column with --split-column "
                f"{in_python('split_column')}"
            )
        node = owners[row]
        for other in MASKS:
            if other != mask and masks[other][node]:
                raise UserError(
                    f"{table.at(row)}: {column} is {word!r}, but the node is already "
                    f"in {other.removesuffix('_mask')}; put it into one"
                )
        masks[mask][node] = True
