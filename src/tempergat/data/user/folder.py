"""Reads a folder of tables into a PyG graph."""

import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data

from tempergat.base import UserError, explain_unreadable
from tempergat.data.dataset import MASKS, UNLABELLED
from tempergat.data.user.edge_columns import EdgeColumns, choose_edge_columns
from tempergat.data.user.options import ReadOptions
from tempergat.data.user.tables import (
    Table,
    as_numbers,
    as_text,
    find_table,
    iter_tables,
    read_table,
)
from tempergat.data.user.user_graph import UserGraph

_SPLIT_NAMES = {
    "train": MASKS[0],
    "val": MASKS[1],
    "valid": MASKS[1],
    "validation": MASKS[1],
    "test": MASKS[2],
}
_ENDS = ("source", "target")
_NOT_FEATURES = ("id", "label", "split")
# A column of whole numbers with gaps is often saved as 1.0 and so on.
_INTEGER = re.compile(r"([+-]?[0-9]{1,18})(?:\.0*)?")
_UNKNOWN_LABELS = ("", "-1", "-1.0", "nan", "NaN")
# Names that pandas gives to a column of row numbers.
_ROW_NUMBERS = ("", "__index_level_0__")


@dataclass
class _Nodes:
    """The table of nodes, with features as numbers and the rest as text."""

    path: Path
    numbers: np.ndarray
    features: np.ndarray | None
    labels: np.ndarray
    splits: np.ndarray | None
    has_ids: bool
    positions: dict[str, int] = field(default_factory=dict)

    def at(self, row: int) -> str:
        return f"{self.path}, row {self.numbers[row]}"


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
    nodes = _read_nodes(node_table, require_finite, labelled)
    data = Data(num_nodes=len(nodes.labels))
    if nodes.features is not None:
        data.x = torch.from_numpy(nodes.features)
    class_names = None
    if labelled:
        labels, class_names = _labels(nodes)
        data.y = torch.from_numpy(labels)
    edge_index, columns = _read_edges(edge_table, nodes, options)
    data.edge_index = torch.from_numpy(edge_index)
    if labelled:
        for name, mask in _masks(folder, nodes).items():
            data[name] = torch.from_numpy(mask)
    node_ids = tuple(nodes.positions) if nodes.has_ids else None
    return columns.added_to(UserGraph(data, node_ids, class_names))


def _read_edges(
    path: Path, nodes: _Nodes, options: ReadOptions
) -> tuple[np.ndarray, EdgeColumns]:
    """The edges, and the columns of them that were asked for."""
    asked = {*options.edge_features, options.edge_weight}
    ends: list[np.ndarray] = []
    parts: dict[str, list[np.ndarray]] = {}
    names: list[str] = []
    for piece in iter_tables(path):
        names = [name for name in piece.columns if name not in _ENDS]
        ends.append(np.stack([_lookup(piece, end, nodes) for end in _ENDS]))
        for name in names:
            if name in asked:
                parts.setdefault(name, []).append(as_numbers(piece, name, True))
    columns = choose_edge_columns(
        str(path), names, lambda name: np.concatenate(parts[name]), options
    )
    return np.concatenate(ends, axis=1), columns


def _require_table(folder: Path, name: str) -> Path:
    path = find_table(folder, name)
    if path is None:
        with explain_unreadable(folder):
            found = sorted(entry.name for entry in folder.iterdir())
        listed = ", ".join(found[:5]) + (", ..." if len(found) > 5 else "")
        raise UserError(
            f"{folder} has no {name}.csv or {name}.parquet; it holds "
            f"{listed or 'nothing'}, but a graph needs nodes and edges"
        )
    return path


def _read_nodes(path: Path, require_finite: bool, labelled: bool) -> _Nodes:
    features: list[np.ndarray] = []
    rows = 0
    texts: dict[str, list[np.ndarray]] = {name: [] for name in _NOT_FEATURES}
    numbers: list[np.ndarray] = []
    for piece in iter_tables(path):
        numbers.append(piece.numbers)
        if labelled:
            piece.column("label")
        rows += len(next(iter(piece.columns.values())))
        for number, name in enumerate(piece.columns, start=1):
            if name in _ROW_NUMBERS:
                raise UserError(
                    f"{path}: column {number} is called {name!r}, so it may be row "
                    "numbers, which are not a feature; give it a name or drop it (in "
                    "pandas, save with index=False)"
                )
        columns = [
            as_numbers(piece, name, require_finite)
            for name in piece.columns
            if name not in _NOT_FEATURES
        ]
        if columns:
            features.append(np.stack(columns, axis=1))
        for name in _NOT_FEATURES:
            if name in piece.columns:
                texts[name].append(as_text(piece.columns[name]))
    joined = {name: np.concatenate(found) for name, found in texts.items() if found}
    if rows == 0:
        raise UserError(f"{path} has no rows; a graph needs at least one node")
    nodes = _Nodes(
        path=path,
        numbers=np.concatenate(numbers),
        features=np.concatenate(features) if features else None,
        labels=joined.get("label", np.full(rows, "")),
        splits=joined.get("split"),
        has_ids="id" in joined,
    )
    nodes.positions = _positions(nodes, joined.get("id"))
    return nodes


def _positions(nodes: _Nodes, identifiers: np.ndarray | None) -> dict[str, int]:
    if identifiers is None:
        return {str(row): row for row in range(len(nodes.labels))}
    positions: dict[str, int] = {}
    for row, identifier in enumerate(identifiers):
        if identifier == "":
            raise UserError(f"{nodes.at(row)}: id is empty; name every node")
        if identifier in positions:
            raise UserError(
                f"{nodes.at(row)}: id {identifier!r} is also that of row "
                f"{nodes.numbers[positions[identifier]]}; give every node its own"
            )
        positions[identifier] = row
    return positions


def _lookup(table: Table, column: str, nodes: _Nodes) -> np.ndarray:
    identifiers = as_text(table.column(column))
    found = list(map(nodes.positions.get, identifiers))
    if None in found:
        row = found.index(None)
        name = identifiers[row]
        remedy = "add the node or drop the row"
        # Whole numbers that another program saved as fractions, like 3.0.
        for other in (name.removesuffix(".0"), f"{name}.0"):
            if other in nodes.positions:
                remedy = f"write it as {other}"
        raise UserError(
            f"{table.at(row)}: {column} is {name!r}, but {nodes.path.name} has no such "
            f"node among its {len(nodes.labels)}; {remedy}"
        )
    return np.array(found, dtype=np.int64)


def _labels(nodes: _Nodes) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """The class of each node, and the names of the classes where they are words."""
    texts = ["" if text in _UNKNOWN_LABELS else text for text in nodes.labels]
    given = [text for text in texts if text != ""]
    if not given:
        raise UserError(f"{nodes.path} has no label in any row; label some nodes")
    are_numbers = _is_number(given[0])
    for row, text in enumerate(texts):
        if text != "" and _is_number(text) != are_numbers:
            kind = "number" if are_numbers else "word"
            raise UserError(
                f"{nodes.at(row)}: label is {text!r}, but the first label is the "
                f"{kind} {given[0]}; use numbers or words throughout"
            )
    if not are_numbers:
        names = tuple(sorted(set(given)))
        classes = {text: number for number, text in enumerate(names)}
        words = [classes.get(text, UNLABELLED) for text in texts]
        return np.array(words, np.int64), names
    labels = np.full(len(texts), UNLABELLED, dtype=np.int64)
    for row, text in enumerate(texts):
        if text == "":
            continue
        number = _INTEGER.fullmatch(text)
        if number is None:
            raise UserError(
                f"{nodes.at(row)}: label is {text!r}, which is not a whole number; "
                "number the classes from 0, or name them by words"
            )
        label = int(number[1])
        if not 0 <= label < len(texts):
            raise UserError(
                f"{nodes.at(row)}: label {text} is out of range; number the classes "
                "from 0, with -1 or nothing for an unknown one"
            )
        labels[row] = label
    return labels, None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _masks(folder: Path, nodes: _Nodes) -> dict[str, np.ndarray]:
    path = find_table(folder, "split")
    if path is not None and nodes.splits is not None:
        raise UserError(
            f"{nodes.path} has a column split and there is a {path.name} too; keep one"
        )
    masks = {name: np.zeros(len(nodes.labels), dtype=bool) for name in MASKS}
    if path is not None:
        table = read_table(path)
        owners = _lookup(table, "id", nodes)
        _assign(masks, table, owners, as_text(table.column("split")))
        return masks
    if nodes.splits is not None:
        owners = np.arange(len(nodes.labels))
        _assign(masks, nodes, owners, nodes.splits)
        return masks
    return {}


def _assign(
    masks: dict[str, np.ndarray],
    table: Table | _Nodes,
    owners: np.ndarray,
    words: np.ndarray,
) -> None:
    """Puts the node of each row into the split that the row names."""
    for row, word in enumerate(words):
        if word == "":
            continue
        mask = _SPLIT_NAMES.get(word.lower())
        if mask is None:
            raise UserError(
                f"{table.at(row)}: split is {word!r}; write train, val, test or nothing"
            )
        node = owners[row]
        for other in MASKS:
            if other != mask and masks[other][node]:
                raise UserError(
                    f"{table.at(row)}: split is {word!r}, but the node is already in "
                    f"{other.removesuffix('_mask')}; put it into one"
                )
        masks[mask][node] = True
