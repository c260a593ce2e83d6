"""Finds nodes by the ids that tables give them."""

import numpy as np

from tempergat.base import UserError
from tempergat.data.tables.nodes import Nodes
from tempergat.data.tables.table import Table, different_texts
from tempergat.data.user.options import in_python


def find_node(name: str, nodes: Nodes) -> int | None:
    """The node of an id; None where there is none.

    Other programs save whole numbers as 3.0, and read 3.
    """
    for spelled in (name, name.removesuffix(".0"), f"{name}.0"):
        if spelled in nodes.ids:
            return int(nodes.ids.get_loc(spelled))
    return None


def node_rows(table: Table, column: str, nodes: Nodes) -> np.ndarray:
    """The nodes that a column names.

    Raises:
        UserError: There is no such node; file and row are named.
    """
    texts, text_of_row = different_texts(table.columns[column])
    node_of_text = nodes.ids.get_indexer(texts)
    for at in np.flatnonzero(node_of_text < 0):
        node = find_node(texts[at], nodes)
        node_of_text[at] = -1 if node is None else node
    rows: np.ndarray = node_of_text[text_of_row]
    unknown = np.flatnonzero(rows < 0)
    if len(unknown):
        row = unknown[0]
        raise UserError(
            f"{table.at(row)}: {column} is {texts[text_of_row[row]]!r}, but "
            f"{nodes.path.name} has no such node among its {len(nodes)}"
            f"{_numbering(nodes)}; add the node or drop the row"
        )
    return rows


def _numbering(nodes: Nodes) -> str:
    if nodes.columns.id is not None:
        return f" (by {nodes.columns.id})"
    return f" (numbered from 0; --id names a column of ids {in_python('id')})"
