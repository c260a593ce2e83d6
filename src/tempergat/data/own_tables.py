"""A folder of tables to a PyG graph."""

from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data

from tempergat.data.dataset import MASKS, UNLABELLED
from tempergat.data.tables import Table, as_numbers, as_text, find_table, read_table
from tempergat.errors import UserError

_SPLIT_NAMES = {
    "train": MASKS[0],
    "val": MASKS[1],
    "valid": MASKS[1],
    "validation": MASKS[1],
    "test": MASKS[2],
}
_NOT_FEATURES = ("id", "label", "split")


def read_folder(folder: Path, require_finite: bool = True) -> Data:
    """Reads `nodes`, `edges` and, where there is one, `split`.

    Args:
        folder: Where the tables are.
        require_finite: Whether a feature may not be NaN or infinity.

    Raises:
        UserError: A table is missing or contradicts another; file and row are named.
    """
    nodes = _require_table(folder, "nodes")
    edges = _require_table(folder, "edges")
    if len(nodes) == 0:
        raise UserError(f"{nodes.path} has no rows; a graph needs at least one node")
    positions = _positions(nodes)
    features = [name for name in nodes.columns if name not in _NOT_FEATURES]
    data = Data(num_nodes=len(nodes))
    if features:
        columns = [as_numbers(nodes, name, require_finite) for name in features]
        data.x = torch.from_numpy(np.stack(columns, axis=1))
    data.y = torch.from_numpy(_labels(nodes))
    source = _lookup(edges, "source", positions, nodes)
    target = _lookup(edges, "target", positions, nodes)
    data.edge_index = torch.from_numpy(np.stack([source, target]))
    for name, mask in _masks(folder, nodes, positions).items():
        data[name] = torch.from_numpy(mask)
    return data


def _require_table(folder: Path, name: str) -> Table:
    path = find_table(folder, name)
    if path is None:
        raise UserError(
            f"{folder} has no {name}.csv or {name}.parquet; a graph of one's own needs "
            "nodes and edges"
        )
    return read_table(path)


def _positions(nodes: Table) -> dict[str, int]:
    if "id" not in nodes.columns:
        return {str(row): row for row in range(len(nodes))}
    positions: dict[str, int] = {}
    for row, identifier in enumerate(as_text(nodes.columns["id"])):
        if identifier == "":
            raise UserError(f"{nodes.at(row)}: id is empty; name every node")
        if identifier in positions:
            raise UserError(
                f"{nodes.at(row)}: id {identifier!r} is also that of row "
                f"{nodes.first_row + positions[identifier]}; give every node its own"
            )
        positions[identifier] = row
    return positions


def _lookup(
    table: Table, column: str, positions: dict[str, int], nodes: Table
) -> np.ndarray:
    found = np.empty(len(table), dtype=np.int64)
    for row, identifier in enumerate(as_text(table.column(column))):
        position = positions.get(identifier)
        if position is None:
            raise UserError(
                f"{table.at(row)}: {column} is {identifier!r}, but {nodes.path.name} "
                f"has no such node among its {len(nodes)}; add the node or drop the row"
            )
        found[row] = position
    return found


def _labels(nodes: Table) -> np.ndarray:
    texts = as_text(nodes.column("label"))
    given = [text for text in texts if text != ""]
    if not given:
        raise UserError(f"{nodes.path} has no label in any row; label some nodes")
    if not _is_integer(given[0]):
        classes = {text: number for number, text in enumerate(sorted(set(given)))}
        return np.array([classes.get(text, UNLABELLED) for text in texts], np.int64)
    labels = np.full(len(texts), UNLABELLED, dtype=np.int64)
    for row, text in enumerate(texts):
        if text == "":
            continue
        if not _is_integer(text):
            raise UserError(
                f"{nodes.at(row)}: label is {text!r}, but the first label is the "
                f"number {given[0]}; use numbers or words throughout"
            )
        if not UNLABELLED <= int(text) < len(texts):
            raise UserError(
                f"{nodes.at(row)}: label {text} is out of range; number the classes "
                "from 0, with -1 or nothing for an unknown one"
            )
        labels[row] = int(text)
    return labels


def _is_integer(text: str) -> bool:
    return text.lstrip("+-").isascii() and text.lstrip("+-").isdigit()


def _masks(
    folder: Path, nodes: Table, positions: dict[str, int]
) -> dict[str, np.ndarray]:
    path = find_table(folder, "split")
    if path is not None and "split" in nodes.columns:
        raise UserError(
            f"{nodes.path} has a column split and there is a {path.name} too; keep one"
        )
    if path is not None:
        table = read_table(path)
        owners = _lookup(table, "id", positions, nodes)
        words = table.column("split")
    elif "split" in nodes.columns:
        table, owners = nodes, np.arange(len(nodes))
        words = nodes.columns["split"]
    else:
        return {}
    masks = {name: np.zeros(len(nodes), dtype=bool) for name in MASKS}
    for row, word in enumerate(as_text(words)):
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
    return masks
