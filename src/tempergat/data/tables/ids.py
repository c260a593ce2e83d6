"""Finds the column that names the nodes where no column has the name of an id."""

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from tempergat.base import UserError, counted, joined
from tempergat.data.tables.columns import NodeColumns, edge_ends
from tempergat.data.tables.files import iter_tables
from tempergat.data.tables.table import Table, as_text, different_texts
from tempergat.data.user.options import ReadOptions, in_python
from tempergat.data.user.reading import Question
from tempergat.data.user.splits import plain_name

# How `plain_name` spells a column that is hardly a feature.
_LIKE_ID = re.compile(".*id|name|key|code|nr|number|vertex|entity|account")
_OR_RENAME = f"{in_python('id')}, or call the column id"


def id_column_of_edges(
    options: ReadOptions,
    first: Table,
    columns: NodeColumns,
    edges: Sequence[tuple[Path, int]],
) -> str | None:
    """The column that names the nodes where only the edges show it; None without.

    A column can name the nodes if it differs in every row and holds every end of every
    edge. The tables are read to their end only where there is such a column.

    Args:
        options: How the tables are read.
        first: The first piece of the table of the nodes.
        columns: Which of its columns is what; none is an id.
        edges: The tables of edges, and which end of them is one of these nodes: 0 for
            the source, 1 for the target.

    Raises:
        UserError: Several columns can name the nodes, or one can and the row numbers
            can as well, or one nearly can that is called like an id or that differs
            in every row where row numbers cannot.
    """
    nodes = first.path
    said = {columns.label, columns.split, *columns.masks.values(), *columns.one_hot}
    said |= {*columns.features} if options.features is not None else set()
    unsaid = [name for name in first.columns if name not in said]
    ids = _ids_by_column(
        nodes, [name for name in unsaid if _may_name_nodes(first.columns[name])]
    )
    try:
        naming, fit_rows = (
            _columns_with_all_ends(ids, edges, options) if ids else ([], True)
        )
        alike = [name for name in unsaid if _LIKE_ID.fullmatch(plain_name(name))]
        nearly = dict.fromkeys([*alike, *({} if fit_rows else ids)])
        faults = {} if naming else _faults(nodes, nearly, edges, options)
    except UserError as error:
        if isinstance(error, Question) and "source" in error.options:
            # Without ends there is no saying which column names nodes.
            raise
        # What else is wrong with the edges is said where they are read.
        return None
    for name, fault in faults.items():
        raise Question(
            f"{nodes} has no column id, and {name} seems to be it, but {fault}; "
            f"correct it, or choose with --id {shlex.quote(name)}, or --id '' for row "
            f"numbers from 0 {_OR_RENAME}",
            id=name,
        )
    if not naming:
        return None
    name = naming[0]
    if len(naming) > 1:
        raise UserError(
            f"{nodes} has no column id, and edges may name nodes by {joined(naming)}; "
            f"choose with --id {_OR_RENAME}"
        )
    if fit_rows and list(ids[name]) != [str(row) for row in range(len(ids[name]))]:
        raise Question(
            f"{nodes} has no column id, and edges may name nodes by {name} or by row "
            f"number from 0; choose with --id {shlex.quote(name)}, or --id '' for the "
            f"row numbers {_OR_RENAME}",
            id=name,
        )
    return name


def _ids_by_column(
    nodes: Path, candidates: Iterable[str]
) -> dict[str, dict[str, None]]:
    """The values of the columns that differ in every row, in their order."""
    ids: dict[str, dict[str, None]] = {name: {} for name in candidates}
    count = 0
    for piece in iter_tables(nodes) if ids else ():
        count += len(piece)
        for name in list(ids):
            column = piece.columns[name]
            if _may_name_nodes(column):
                ids[name] |= dict.fromkeys(_ids(column))
            if len(ids[name]) != count:
                del ids[name]
        if not ids:
            break
    return ids


def _columns_with_all_ends(
    ids: dict[str, dict[str, None]],
    edges: Iterable[tuple[Path, int]],
    options: ReadOptions,
) -> tuple[list[str], bool]:
    """The columns that hold every end, and whether all ends can be row numbers."""
    columns, fit_rows, is_empty = list(ids), True, True
    count = len(next(iter(ids.values())))
    for path, side in edges:
        for piece in iter_tables(path):
            ends = _ends(piece, side, options)
            is_empty = is_empty and not ends
            columns = [name for name in columns if ends <= ids[name].keys()]
            fit_rows = fit_rows and all(
                end.isdecimal() and int(end) < count for end in ends
            )
            if not columns:
                return [], fit_rows
    return ([] if is_empty else columns), fit_rows


def _faults(
    nodes: Path,
    names: Iterable[str],
    edges: Sequence[tuple[Path, int]],
    options: ReadOptions,
) -> dict[str, str]:
    """What is wrong with columns that hold nearly all ends."""
    ends = {
        end
        for path, side in edges
        for piece in iter_tables(path)
        for end in _ends(piece, side, options)
    }
    faults = {}
    for name in names if ends else ():
        ids = Counter(
            text for piece in iter_tables(nodes) for text in _ids(piece.columns[name])
        )
        padded = {_without_zeros(text): text for text in ids}
        lacking = [end for end in ends if _without_zeros(end) not in padded]
        if 10 * len(lacking) > len(ends) or 10 * len(ids) < 9 * ids.total():
            continue
        value, count = ids.most_common(1)[0]
        other = next((end for end in sorted(ends) if end not in ids), None)
        wrong = [f"{value!r} is in {counted(count, 'row')}"] if count > 1 else []
        if lacking:
            wrong.append(f"edges name {min(lacking)!r}, which is not in it")
        elif other is not None:
            known = padded[_without_zeros(other)]
            wrong.append(f"it holds {known!r} where edges name {other!r}")
        faults[name] = joined(wrong or ["it has gaps or fractions"])
    return faults


def _ends(edges: Table, side: int, options: ReadOptions) -> set[str]:
    """The ids that edges have at one end."""
    texts, _ = different_texts(edges.columns[edge_ends(edges, options)[side]])
    return {*_ids(texts)}


def _without_zeros(text: str) -> str:
    return text.lstrip("0") or "0"


def _ids(column: np.ndarray) -> list[str]:
    """A column as ids. Other programs save whole numbers as 3.0, and read 3."""
    return [text.removesuffix(".0") for text in as_text(column)]


def _may_name_nodes(column: np.ndarray) -> bool:
    """Whether a column differs in every row and has neither gaps nor fractions."""
    if any(map(_is_fraction, column[:9])):
        return False
    ids = _ids(column)
    return len({*ids}) == len(ids) and not any(
        text == "" or _is_fraction(text) for text in ids
    )


def _is_fraction(value: object) -> bool:
    try:
        return not float(value).is_integer()  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
