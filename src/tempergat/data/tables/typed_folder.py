"""Reads a folder with a table for each node type and each edge type.

`nodes_author.csv` holds the nodes of type author, and
`edges_author__writes__paper.csv` the edges from authors to papers; the relation may be
left out: `edges_author__paper.csv`. The tables are those of a graph without types. The
columns that options name are those of the type to classify; `--id` is for all types
that have such a column.
"""

import hashlib
import json
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import HeteroData

from tempergat.base import UserError, suggest_one_of
from tempergat.data.dataset import TypeNames
from tempergat.data.tables.columns import edge_ends, node_columns
from tempergat.data.tables.files import (
    find_table,
    iter_tables,
    table_stems,
    unread_files,
)
from tempergat.data.tables.folder import with_targets
from tempergat.data.tables.nodes import Nodes, node_rows, read_nodes
from tempergat.data.tables.split_tables import split_tables
from tempergat.data.user.edges import without_edge_columns
from tempergat.data.user.options import ReadOptions, in_python
from tempergat.data.user.reading import NoLabels, Reading, UserGraph

EdgeType = tuple[str, str, str]

_NODES, _EDGES = "nodes_", "edges_"
_BETWEEN = "__"
# The relation of a table of edges that names none.
_PLAIN_RELATION = "to"


def is_typed_folder(folder: Path) -> bool:
    """Whether a folder has tables of node types, and no table of all nodes."""
    return find_table(folder, "nodes") is None and bool(_types(folder, _NODES))


def read_typed_folder(folder: Path, reading: Reading) -> UserGraph:
    """Reads the tables of all node types and edge types.

    Raises:
        UserError: A table is missing or contradicts another, or it is not clear which
            node type to classify.
    """
    without_edge_columns(str(folder), (), reading)
    tables = _tables(folder, _NODES)
    target = _target(folder, tables, reading)
    edges = _edge_tables(folder, tables)
    nodes = {}
    for name, path in tables.items():
        of_type = reading
        if name != target:
            others = _other_options(path, reading.options)
            of_type = replace(reading, options=others, labelled=False)
        ends = [
            (edge_path, side)
            for edge_path, kind in edges.items()
            for side in (0, 1)
            if kind[2 * side] == name
        ]
        nodes[name] = read_nodes(iter_tables(path), ends, of_type)
    # An option for the id is for all types, and each shows its own.
    reading.learned.pop("id", None)
    data = HeteroData()
    for name, table in nodes.items():
        data[name].num_nodes = len(table)
        if table.features is not None:
            data[name].x = torch.from_numpy(table.features)
    _add_edges(edges, data, nodes, reading)
    _add_reverses(folder, data, reading)
    split = split_tables(folder, reading)
    graph = with_targets(data, data[target], nodes[target], split, reading)
    left_out = [
        column
        for name, table in nodes.items()
        if name != target
        for column in table.columns.left_out
    ]
    unread = unread_files(folder, (*tables.values(), *edges, *split.values()))
    type_names = {}
    for name, table in nodes.items():
        ids = None if table.columns.id is None else json.dumps(list(table.ids))
        type_names[name] = TypeNames(
            table.feature_names if table.features is not None else (),
            ids and hashlib.sha256(ids.encode()).hexdigest(),
        )
    return replace(
        graph,
        type_names=type_names,
        how_read=replace(graph.how_read, nodes=_named_by(nodes)),
    ).not_reading((*left_out, *unread))


def _named_by(nodes: dict[str, Nodes]) -> str | None:
    """The columns that name the nodes of each type; None where none does."""
    ids = {name: of_type.columns.id for name, of_type in nodes.items()}
    if len({*ids.values()}) == 1:
        return next(iter(ids.values()))
    return ", ".join(f"{id or 'row number'} of {name}" for name, id in ids.items())


def _types(folder: Path, prefix: str) -> list[str]:
    """What follows the prefix in the names of the tables that have it, sorted."""
    return [
        stem.removeprefix(prefix)
        for stem in table_stems(folder)
        if stem.startswith(prefix) and stem != prefix
    ]


def _tables(folder: Path, prefix: str) -> dict[str, Path]:
    paths = {stem: find_table(folder, prefix + stem) for stem in _types(folder, prefix)}
    return {stem: path for stem, path in paths.items() if path is not None}


def _target(folder: Path, tables: dict[str, Path], reading: Reading) -> str:
    options = reading.options
    if options.target is not None:
        if options.target not in tables:
            raise UserError(
                f"target is {options.target!r}, but {folder} has no "
                f"{_NODES}{options.target}.csv; "
                f"{suggest_one_of(options.target, list(tables))}"
            )
        return options.target
    given = ReadOptions(label=options.label)
    labelled_types = [
        name
        for name, path in tables.items()
        if node_columns(next(iter_tables(path)), given, False).label is not None
    ]
    if len(labelled_types) == 1:
        return labelled_types[0]
    if not labelled_types:
        column = options.label or "label"
        kind = NoLabels if reading.labelled else UserError
        raise kind(
            f"no table of nodes in {folder} has a column {column}; give one node type "
            "its classes, or name the column with --label and the type with --target "
            f"{in_python('label', 'target')}"
        )
    raise UserError(
        f"{folder} has labels for the node types {', '.join(labelled_types)}; choose "
        f"the one to classify with --target {in_python('target')}"
    )


def _other_options(path: Path, options: ReadOptions) -> ReadOptions:
    """The options for the table of a type that is not classified."""
    names = next(iter(iter_tables(path))).columns
    given = options.id if options.id in names else None
    return ReadOptions(
        id=given,
        missing=options.missing,
        drop=options.drop,
        dates=options.dates,
        source=options.source,
        dest=options.dest,
    )


def _edge_tables(folder: Path, nodes: dict[str, Path]) -> dict[Path, EdgeType]:
    tables = _tables(folder, _EDGES)
    if not tables:
        raise UserError(
            f"{folder} has no table of edges; name one like "
            f"{_EDGES}{_BETWEEN.join((next(iter(nodes)), 'to', next(iter(nodes))))}.csv"
        )
    return {path: _edge_type(path, stem, nodes) for stem, path in tables.items()}


def _add_edges(
    tables: dict[Path, EdgeType],
    data: HeteroData,
    nodes: dict[str, Nodes],
    reading: Reading,
) -> None:
    """Reads the tables of edges, with notes on columns that are not used."""
    options = reading.options
    for path, kind in tables.items():
        pieces, unused = [], []
        for piece in iter_tables(path):
            columns = edge_ends(piece, options)
            sides = zip(columns, (kind[0], kind[2]), strict=True)
            drops = options.drop_unknown_edges
            ends = np.stack([node_rows(piece, c, nodes[s], drops) for c, s in sides])
            pieces.append(ends[:, (ends >= 0).all(axis=0)])
            unused = [name for name in piece.columns if name not in columns]
        data[kind].edge_index = torch.from_numpy(np.concatenate(pieces, axis=1))
        without_edge_columns(str(path), unused, reading)


def _edge_type(path: Path, stem: str, nodes: Collection[str]) -> EdgeType:
    parts = stem.split(_BETWEEN)
    if len(parts) == 2:
        parts.insert(1, _PLAIN_RELATION)
    if len(parts) != 3 or not all(parts):
        raise UserError(
            f"{path} has a name that does not say which nodes its edges join; call it "
            f"{_EDGES}SOURCE{_BETWEEN}RELATION{_BETWEEN}TARGET.csv, with two node types"
        )
    for name in (parts[0], parts[2]):
        if name not in nodes:
            raise UserError(
                f"{path} names the node type {name!r}, but there is no "
                f"{_NODES}{name}.csv; {suggest_one_of(name, list(nodes))}"
            )
    return parts[0], parts[1], parts[2]


def _add_reverses(folder: Path, data: HeteroData, reading: Reading) -> None:
    """Adds the reverse of edge types that lead one way only, with a note."""
    directed = reading.options.directed
    if directed:
        return
    given: list[EdgeType] = list(data.edge_types)
    added = []
    for source, relation, end in given:
        ends = data[source, relation, end].edge_index
        reverse = ends.flip(0)
        if source == end:
            has_reverse = {*map(tuple, ends.T.tolist())} == {
                *map(tuple, reverse.T.tolist())
            }
        else:
            has_reverse = any((a, b) == (end, source) for a, _, b in given)
        if not has_reverse:
            data[end, f"rev_{relation}", source].edge_index = reverse
            added.append(_BETWEEN.join((source, relation, end)))
    # With `directed=False` this is what the user asked for.
    if added and directed is None:
        reading.notes.append(
            f"{folder}: edges of {', '.join(added)} lead one way, so they are followed "
            "both ways; --directed follows them as they are listed"
        )
