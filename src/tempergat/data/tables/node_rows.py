"""Finds nodes by the ids that tables give them."""

import numpy as np

from tempergat.base import UserError
from tempergat.data.tables.nodes import Nodes
from tempergat.data.tables.table import Table, as_text
from tempergat.data.user.options import in_python


def find_node(name: str, nodes: Nodes) -> int | None:
    """The node of an id; None where there is none.

    Other programs save whole numbers as 3.0, and read 3.
    """
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
                found[row] = find_node(identifiers[row], nodes)
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
