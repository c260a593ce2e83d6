"""Reads the split of tables: columns of the nodes, or tables beside them."""

from pathlib import Path

import numpy as np

from tempergat.base import UserError, joined
from tempergat.data.dataset import MASKS
from tempergat.data.tables.columns import node_columns
from tempergat.data.tables.files import find_table, read_table, table_stems
from tempergat.data.tables.nodes import Nodes, node_rows, read_mask
from tempergat.data.tables.table import Table, as_known_text
from tempergat.data.user.options import ReadOptions, in_python
from tempergat.data.user.reading import Reading
from tempergat.data.user.splits import split_part

_WHOLE = ("split", "splits")
_NEEDS = "it needs id and split, which is train, val or test"


def split_tables(folder: Path, reading: Reading) -> dict[str, Path]:
    """The tables of a folder that hold its split.

    Either one, called split, or one for each part, by the name of its mask; none where
    the user chose a column, or no split is read.

    Raises:
        UserError: The split is given twice, or a part of it is missing.
    """
    if reading.options.split_column is not None or not reading.labelled:
        return {}
    whole = [path for name in _WHOLE if (path := find_table(folder, name)) is not None]
    parts: dict[str, list[str]] = {name: [] for name in MASKS}
    for stem in table_stems(folder):
        part = split_part(stem)
        if part is not None and not stem.startswith(("nodes", "edges")):
            parts[part].append(stem)
    stems = [stem for several in parts.values() for stem in several]
    if not parts[MASKS[0]]:
        stems = []
    if len(whole) + bool(stems) > 1:
        raise UserError(
            f"{folder} has the split in {joined([p.name for p in whole] + stems)}; "
            "keep one"
        )
    if whole:
        return {"split": whole[0]}
    if not stems:
        return {}
    tables = {}
    for mask, names in parts.items():
        table = find_table(folder, names[0]) if len(names) == 1 else None
        if table is None:
            raise UserError(
                f"{folder} has tables called like a split, {joined(stems)}, but "
                f"{len(names) or 'none'} for {mask.removesuffix('_mask')}; give each "
                "of train, val and test one, or write split.csv with the columns id "
                "and split, or move them elsewhere"
            )
        tables[mask] = table
    return tables


def read_split(
    tables: dict[str, Path], nodes: Nodes, missing: frozenset[str]
) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
    """The masks of a split and what held it; nothing where none is given.

    Args:
        tables: What `split_tables` returned.
        nodes: The nodes, whose table may hold the split in its columns.
        missing: The words that stand for a missing value.

    Raises:
        UserError: The split is given twice, or a node is in two parts.
    """
    columns = nodes.columns
    given = tuple(columns.masks.values()) or ((columns.split,) if columns.split else ())
    if tables and given:
        raise UserError(
            f"{nodes.path} has a column {given[0]} and there is a "
            f"{next(iter(tables.values())).name} too; keep one, or choose the "
            f"column with --split-column {given[0]} {in_python('split_column')}"
        )
    if nodes.masks:
        return nodes.masks, given
    masks = {name: np.zeros(len(nodes), dtype=bool) for name in MASKS}
    if nodes.splits is not None:
        owners = np.arange(len(nodes))
        _assign(masks, nodes, owners, nodes.splits, columns.split or "split")
        return masks, given
    if "split" in tables:
        _read_whole(read_table(tables["split"]), masks, nodes, missing)
    else:
        for mask, path in tables.items():
            _read_part(path, mask, masks, nodes)
    return (masks if tables else {}), tuple(path.name for path in tables.values())


def _read_whole(
    table: Table, masks: dict[str, np.ndarray], nodes: Nodes, missing: frozenset[str]
) -> None:
    columns = node_columns(table, _options(table, nodes), labelled=False)
    if columns.id is None or not (columns.split or columns.masks):
        raise UserError(
            f"{table.path} has no column {'split' if columns.id else 'id'}, only "
            f"{', '.join(table.columns)}; {_NEEDS}"
        )
    if columns.split and columns.masks:
        raise UserError(
            f"{table.path} has the column {columns.split} and mask columns too; keep "
            "one of them"
        )
    owners = node_rows(table, columns.id, nodes)
    if columns.split is not None:
        words = as_known_text(table.columns[columns.split], missing)
        _assign(masks, table, owners, words, columns.split)
    for mask, name in columns.masks.items():
        masks[mask][owners[read_mask(table, name, missing)]] = True


def _options(table: Table, nodes: Nodes) -> ReadOptions:
    name = nodes.columns.id
    return ReadOptions(id=name if name in table.columns else None, features=())


def _read_part(
    path: Path, mask: str, masks: dict[str, np.ndarray], nodes: Nodes
) -> None:
    """Reads a table of the nodes of one part, which may lack a header."""
    table = read_table(path)
    name = next(iter(table.columns))
    if len(table.columns) > 1:
        id_column = node_columns(table, _options(table, nodes), labelled=False).id
        if id_column is None:
            raise UserError(
                f"{path} has no column id, only {', '.join(table.columns)}; give it "
                "one column with the nodes of this part, or move it elsewhere"
            )
        name = id_column
    owners = node_rows(table, name, nodes)
    word = mask.removesuffix("_mask")
    _assign(masks, table, owners, np.full(len(owners), word, dtype=object), name)
    first = nodes.find(name)
    if first is not None and len(table.columns) == 1:
        masks[mask][first] = True


def _assign(
    masks: dict[str, np.ndarray],
    table: Table | Nodes,
    owners: np.ndarray,
    words: np.ndarray,
    column: str,
) -> None:
    """Puts the node of each row into the split that the row names."""
    parts = {word: split_part(word) for word in set(words)}
    for row, word in enumerate(words):
        if word == "":
            continue
        mask = parts[word]
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
