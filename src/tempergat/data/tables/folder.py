"""Reads a folder of tables into a PyG graph."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.data.storage import BaseStorage

from tempergat.base import (
    UserError,
    counted,
    did_you_mean,
    explain_unreadable,
    listed,
)
from tempergat.data.dataset import HowRead, Target
from tempergat.data.tables.columns import edge_ends
from tempergat.data.tables.files import (
    find_table,
    iter_tables,
    table_stems,
    unread_files,
)
from tempergat.data.tables.nodes import Nodes, node_rows, read_nodes
from tempergat.data.tables.numbers import as_numbers, fill_gaps
from tempergat.data.tables.split_tables import read_split, split_tables
from tempergat.data.tables.table import Table, as_known_text, as_text
from tempergat.data.user.edges import with_edge_columns
from tempergat.data.user.labels import classes_of_texts
from tempergat.data.user.options import ReadOptions
from tempergat.data.user.reading import Reading, UserGraph


def read_folder(folder: Path, reading: Reading) -> UserGraph:
    """Reads `nodes`, `edges` and, where there is one, the table of the split.

    Raises:
        UserError: A table is missing or contradicts another; file and row are named.
    """
    node_table, edge_table = _find_tables(folder, reading.options)
    graph = read_tables(folder, node_table, edge_table, reading)
    if not node_table.name.startswith("nodes."):
        reading.notes.append(
            f"{folder}: {node_table.name} is taken for the nodes and "
            f"{edge_table.name} for the edges; call them nodes and edges to say so"
        )
    return graph


def read_tables(
    folder: Path, node_table: Path, edge_table: Path, reading: Reading
) -> UserGraph:
    """Reads the tables of nodes and edges in a folder, and that of the split."""
    ends = [(edge_table, side) for side in (0, 1)]
    nodes = read_nodes(iter_tables(node_table), ends, reading)
    split = split_tables(folder, reading)
    graph = join_tables(nodes, iter_tables(edge_table), split, reading)
    read = (node_table, edge_table, *split.values())
    return graph.not_reading(unread_files(folder, read))


def join_tables(
    nodes: Nodes, edges: Iterator[Table], split: dict[str, Path], reading: Reading
) -> UserGraph:
    """Makes a graph of the tables of nodes and edges.

    Args:
        nodes: The nodes.
        edges: The table of the edges, in at least one piece.
        split: What `split_tables` returned.
        reading: How the tables are read. It receives words, missing values and
            infinity among edge features.

    Raises:
        UserError: A table contradicts another; file and row are named.
    """
    data, options = Data(num_nodes=len(nodes)), reading.options
    if nodes.features is not None:
        data.x = torch.from_numpy(nodes.features)
    graph = with_targets(data, data, nodes, split, reading)
    first = next(edges)
    known_names = [*nodes.columns.features, *nodes.columns.left_out, *first.columns]
    for name in options.drop if nodes.labels is not None else ():
        if name not in known_names:
            hint = did_you_mean(name, known_names).strip()
            raise UserError(
                f"--drop names {name!r}, but neither {nodes.path} nor {first.path} has "
                f"such a column; {hint or f'choose among {listed(known_names, 9)}'}"
            )
    ends, names, columns = _read_edges(chain([first], edges), nodes, reading)
    known = (ends >= 0).all(axis=0)
    if not known.all():
        ends, columns = ends[:, known], {n: c[known] for n, c in columns.items()}
        reading.notes.append(
            f"{first.path}: {counted(int((~known).sum()), 'edge')} of nodes that "
            f"{nodes.path.name} does not have left out"
        )
    flags, notes = fill_gaps(first.path, columns, reading, " of edges")
    reading.notes.extend(notes)
    if reading.errors:
        # What is missing is said there; the graph is reported on, and not used.
        numbers = {n: c for n, c in columns.items() if n not in options.one_hot}
        columns |= {name: np.nan_to_num(column) for name, column in numbers.items()}
    names_within = {}
    for name in columns.keys() & {*options.one_hot}:
        words = np.unique(columns[name])
        columns[name] = (columns[name][:, None] == words).astype(np.float32)
        names_within[name] = [f"{name}={word or 'missing'}" for word in words]
    for name in flags.keys() - {options.edge_weight}:
        columns[name] = np.column_stack([columns[name], flags[name]])
        names_within[name] = [name, f"{name} is missing"]
    data.edge_index = torch.from_numpy(ends)
    read, source = columns.__getitem__, str(first.path)
    return with_edge_columns(graph, source, names, read, reading, names_within)


def with_targets(
    data: Data | HeteroData,
    store: BaseStorage | Data,
    nodes: Nodes,
    split: dict[str, Path],
    reading: Reading,
) -> UserGraph:
    """Adds labels and masks to a graph, and what is known of the nodes to classify.

    Args:
        data: The graph.
        store: The part of it that holds the nodes to classify.
        nodes: These nodes.
        split: What `split_tables` returned.
        reading: How the tables are read.

    Raises:
        UserError: The labels or the split contradict themselves.
    """
    columns, class_names = nodes.columns, None
    how_read = HowRead(nodes=columns.id, not_read=columns.left_out)
    reading.notes.extend(nodes.notes)
    if nodes.labels is not None:
        classes, class_names, unlabelled = classes_of_texts(
            str(nodes.path), nodes.labels, nodes.at, reading
        )
        store.y = torch.from_numpy(classes)
        label = columns.label or how_read.label
        how_read = replace(how_read, label=label, unlabelled=unlabelled)
    if reading.labelled:
        masks, where = read_split(split, nodes, reading.missing)
        how_read = replace(how_read, split=where)
        for name, mask in masks.items():
            store[name] = torch.from_numpy(mask)
    return UserGraph(
        data,
        node_ids=None if columns.id is None else tuple(nodes.ids),
        predicted=Target(0, class_names),
        feature_names=nodes.feature_names if nodes.features is not None else None,
        label_name=columns.label,
        split_name=columns.split,
        has_columns=True,
        how_read=how_read,
    )


def _find_tables(folder: Path, options: ReadOptions) -> tuple[Path, Path]:
    """The tables of nodes and edges, or of just two tables what they must be."""
    tables = [find_table(folder, name) for name in ("nodes", "edges")]
    if tables == [None, None]:
        stems = table_stems(folder)
        paths = [find_table(folder, stem) for stem in stems if len(stems) == 2]
        others = [path for path in paths if path is not None]
        for is_edges in (_has_ends, _repeats_nodes):
            others.sort(key=lambda path: is_edges(path, options))
            if [is_edges(path, options) for path in others] == [False, True]:
                tables = [*others]
                break
    for path, name in zip(tables, ("nodes", "edges"), strict=True):
        if path is None:
            with explain_unreadable(folder):
                names = sorted(entry.name for entry in folder.iterdir())
            shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
            raise UserError(
                f"{folder} has no {name}.csv, .tsv, .csv.gz or .parquet; it holds "
                f"{shown or 'nothing'}, but a graph needs nodes and edges; call its "
                "tables so"
            )
    node_table, edge_table = tables
    assert node_table is not None
    assert edge_table is not None
    return node_table, edge_table


def _has_ends(path: Path, options: ReadOptions) -> bool:
    try:
        edge_ends(next(iter_tables(path)), options)
    except UserError:
        return False
    return True


def _repeats_nodes(path: Path, _options: ReadOptions) -> bool:
    """Whether the first column has a value in several rows, as ends of edges do."""
    first = as_text(next(iter(next(iter_tables(path)).columns.values())))
    return len({*first}) < len(first)


def _read_edges(
    pieces: Iterable[Table], nodes: Nodes, reading: Reading
) -> tuple[np.ndarray, list[str], dict[str, np.ndarray]]:
    """The edges, the names of their other columns, and the columns asked for."""
    options = reading.options
    ends: list[np.ndarray] = []
    parts: dict[str, list[np.ndarray]] = {}
    names: list[str] = []
    drops = options.drop_unknown_edges
    for piece in pieces:
        header = list(piece.columns)[:2]
        if len(header) == 2 and None not in map(nodes.find, header):
            raise UserError(
                f"{piece.path} begins with {header[0]}, {header[1]}, which are nodes; "
                "its first line must name the columns: source,target"
            )
        sides = edge_ends(piece, options)
        names = [n for n in piece.columns if n not in (*sides, *options.drop)]
        try:
            rows = [node_rows(piece, side, nodes, drops) for side in sides]
        except UserError:
            _refuse_counting_from_one(piece, sides, nodes)
            raise
        ends.append(np.stack(rows))
        for name in [name for name in names if name in reading.edge_columns]:
            if name in options.one_hot:
                values = as_known_text(piece.columns[name], reading.missing)
            else:
                values = as_numbers(piece, name, reading, of_edges=True)
            parts.setdefault(name, []).append(values)
    columns = {name: np.concatenate(several) for name, several in parts.items()}
    return np.concatenate(ends, axis=1), names, columns


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
