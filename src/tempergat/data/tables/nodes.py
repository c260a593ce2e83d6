"""Reads the table of nodes, and finds nodes by their ids."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from tempergat.base import UserError, require_memory
from tempergat.data.tables.columns import NodeColumns, node_columns
from tempergat.data.tables.ids import id_column_of_edges
from tempergat.data.tables.numbers import LEAVE_OUT, as_numbers, fill_gaps
from tempergat.data.tables.table import Table, as_known_text, as_text, different_texts
from tempergat.data.user.labels import known_texts
from tempergat.data.user.options import in_python
from tempergat.data.user.reading import OtherIds, Question, Reading
from tempergat.data.user.splits import TRUTH

# A column with more different words holds names or sentences, not kinds.
_MOST_WORDS = 1000


@dataclass
class Nodes:
    """The table of nodes, with features as numbers and the rest as text.

    Attributes:
        path: The file.
        columns: Which column is what.
        numbers: The number of each row in the file.
        features: One row for each node; None where there are none.
        feature_names: What the columns of the features are.
        labels: The label of each node as it is written; None without labels.
        splits: The split of each node, "" where it is in none; None without.
        masks: The masks that the table holds, by name.
        ids: The id of each node, or its number as text, as a pandas `Index`.
        notes: What was filled.
    """

    path: Path
    columns: NodeColumns
    numbers: np.ndarray
    features: np.ndarray | None
    feature_names: tuple[str, ...]
    labels: np.ndarray | None
    splits: np.ndarray | None
    masks: dict[str, np.ndarray]
    ids: Any = None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.numbers)

    def at(self, row: int) -> str:
        """File and row, for an error."""
        return f"{self.path}, row {self.numbers[row]}"

    def find(self, name: str) -> int | None:
        """The node of an id; None where there is none.

        Other programs save whole numbers as 3.0, and read 3.
        """
        for spelled in (name, name.removesuffix(".0"), f"{name}.0"):
            if spelled in self.ids:
                return int(self.ids.get_loc(spelled))
        return None


def read_nodes(
    pieces: Iterator[Table], edges: Sequence[tuple[Path, int]], reading: Reading
) -> Nodes:
    """Reads the table of nodes.

    Args:
        pieces: The table, in at least one piece.
        edges: The tables of edges, and which end of them is one of these nodes: 0 for
            the source, 1 for the target. They may show which column names the nodes.
        reading: How it is read. It receives missing values and infinity among the
            features.

    Raises:
        UserError: The table contradicts itself, or it is not clear which column is
            what.
    """
    first, options = next(pieces), reading.options
    columns = node_columns(first, options, reading.labelled)
    if options.id is None and columns.id is None:
        id_of_edges = id_column_of_edges(options, first, columns, edges)
        if id_of_edges is not None:
            reading.learned["id"] = id_of_edges
            options = replace(options, id=id_of_edges)
            columns = node_columns(first, options, reading.labelled)
    plain = tuple(name for name in columns.features if name not in columns.one_hot)
    parts: dict[str, list[np.ndarray]] = {}
    for piece in chain([first], pieces):
        values = {"row": piece.numbers}
        if plain:
            numbers = [as_numbers(piece, name, reading) for name in plain]
            values["x"] = np.stack(numbers, axis=1)
        values |= _texts_and_masks(piece, columns, reading)
        for name, part in values.items():
            parts.setdefault(name, []).append(part)
    values = {name: np.concatenate(several) for name, several in parts.items()}
    if not len(values["row"]):
        raise UserError(f"{first.path} has no rows; a graph needs at least one node")
    nodes = Nodes(
        path=first.path,
        columns=columns,
        numbers=values["row"],
        features=values.get("x"),
        feature_names=plain,
        labels=values.get("label"),
        splits=values.get("split"),
        masks={mask: values[mask] for mask in columns.masks if mask in values},
    )
    source = str(nodes.path)
    words = {
        name: known_texts(source, values[f"word {name}"], reading, name)[0]
        for name in columns.one_hot
    }
    x = nodes.features
    by_name = {} if x is None else dict(zip(plain, x.T, strict=True))
    by_name = {name: {**by_name, **words}[name] for name in columns.features}
    flags, nodes.notes = fill_gaps(nodes.path, by_name, reading)
    if words:
        nodes.features, nodes.feature_names = _encode_words(nodes, words, reading)
    if flags and nodes.features is not None:
        nodes.feature_names += tuple(f"{name} is missing" for name in flags)
        nodes.features = np.column_stack([nodes.features, *flags.values()])
    nodes.ids = _index_of_ids(nodes, values.get("id"), reading.missing)
    return nodes


def _texts_and_masks(
    piece: Table, columns: NodeColumns, reading: Reading
) -> dict[str, np.ndarray]:
    """The columns of a piece that are not numbers."""
    texts, labelled = piece.columns, reading.labelled
    values = {f"word {name}": as_text(texts[name]) for name in columns.one_hot}
    if columns.id is not None:
        values["id"] = as_text(texts[columns.id])
    if labelled and columns.label is not None:
        values["label"] = as_text(texts[columns.label])
    if labelled and columns.split is not None:
        values["split"] = as_known_text(texts[columns.split], reading.missing)
    for mask, name in columns.masks.items() if labelled else ():
        values[mask] = read_mask(piece, name, reading.missing)
    return values


def read_mask(piece: Table, name: str, missing: frozenset[str]) -> np.ndarray:
    """A column of 0 and 1, or words like yes and no, where nothing is 0.

    Raises:
        UserError: It holds something else.
    """
    remedy = (
        "write 0 or 1, or choose another column with --split-column "
        f"{in_python('split_column')}"
    )
    texts = as_known_text(piece.columns[name], missing)
    column = np.array([TRUTH.get(text.lower(), text) for text in texts], dtype=object)
    plain = replace(piece, columns={name: column})
    reading = Reading(str(piece.path))
    values = np.nan_to_num(as_numbers(plain, name, reading, remedy))
    wrong = np.flatnonzero((values != 0) & (values != 1))
    if len(wrong):
        row = int(wrong[0])
        raise UserError(
            f"{piece.at(row)}: {name} is {piece.columns[name][row]!r}, but a mask is 0 "
            f"or 1; {remedy}"
        )
    mask: np.ndarray = values == 1
    return mask


def _encode_words(
    nodes: Nodes, words: dict[str, np.ndarray], reading: Reading
) -> tuple[np.ndarray, tuple[str, ...]]:
    """The features with a 0-1 column for every word of the columns of words."""
    names: list[str] = []
    columns: list[np.ndarray] = []
    numbers = iter(() if nodes.features is None else nodes.features.T)
    for name in nodes.columns.features:
        if name not in words:
            names.append(name)
            columns.append(next(numbers))
            continue
        texts = words[name]
        gaps = np.flatnonzero(texts == "")
        if len(gaps) and reading.options.fill is None:
            reading.problem(
                Question(
                    f"{nodes.at(int(gaps[0]))}: {name} is missing; fill it, for "
                    "example with --fill most-frequent, drop the row, or "
                    f"{LEAVE_OUT}",
                    fill="most-frequent",
                )
            )
        different, word_of_row = np.unique(texts, return_inverse=True)
        if len(different) > _MOST_WORDS:
            raise Question(
                f"{nodes.path}: {name} holds {len(different)} different words, more "
                f"than the {_MOST_WORDS} that --one-hot encodes; {LEAVE_OUT}",
                drop=(name,),
            )
        require_memory(
            4 * len(texts) * len(different),
            f"the {len(different)} words of {name} as 0-1 features",
            LEAVE_OUT,
        )
        names += [f"{name}={word}" for word in different]
        columns += [
            (word_of_row == at).astype(np.float32) for at in range(len(different))
        ]
    return np.stack(columns, axis=1), tuple(names)


def _index_of_ids(nodes: Nodes, ids: np.ndarray | None, missing: frozenset[str]) -> Any:
    import pandas

    if ids is None:
        return pandas.Index([str(row) for row in range(len(nodes))], dtype=object)
    index = pandas.Index(ids, dtype=object)
    is_missing = np.array([text.lower() in missing for text in ids])
    column = nodes.columns.id
    for row in np.flatnonzero(is_missing | index.duplicated()).tolist():
        if not is_missing[row]:
            first = ids.tolist().index(ids[row])
            raise UserError(
                f"{nodes.at(row)}: {column} {ids[row]!r} is also that of row "
                f"{nodes.numbers[first]}; give every node its own, or choose another "
                f"column with --id {in_python('id')}"
            )
        word, remedy = "empty", ""
        if ids[row]:
            word = f"{ids[row]!r}, a word for a missing value"
            remedy = "; or change the words with --missing"
        raise UserError(f"{nodes.at(row)}: {column} is {word}; name every node{remedy}")
    return index


def node_rows(
    table: Table, column: str, nodes: Nodes, drop_unknown: bool | None = None
) -> np.ndarray:
    """The nodes that a column names.

    Args:
        table: The table.
        column: The column.
        nodes: The nodes.
        drop_unknown: Whether a node that is not among them is -1; None where no
            option can say so, as in a table of a split.

    Raises:
        UserError: There is no such node; file and row are named.
    """
    texts, text_of_row = different_texts(table.columns[column])
    node_of_text = nodes.ids.get_indexer(texts)
    for at in np.flatnonzero(node_of_text < 0):
        node = nodes.find(texts[at])
        node_of_text[at] = -1 if node is None else node
    rows: np.ndarray = node_of_text[text_of_row]
    unknown = np.flatnonzero(rows < 0)
    if len(unknown) and not drop_unknown:
        row = int(unknown[0])
        numbering = f"numbered from 0; --id names a column of ids {in_python('id')}"
        if nodes.columns.id is not None:
            numbering = f"by {nodes.columns.id}"
        message = (
            f"{table.at(row)}: {column} is {texts[text_of_row[row]]!r}, but "
            f"{nodes.path.name} has no such node among its {len(nodes)} ({numbering}); "
            "add the node or drop the row"
        )
        # Where most nodes are unknown, edges name nodes in another way.
        if 2 * len(unknown) > len(rows):
            raise OtherIds(message)
        if drop_unknown is None:
            raise UserError(message)
        raise Question(
            f"{message}; --drop-unknown-edges leaves out all such edges "
            f"{in_python('drop_unknown_edges')}",
            drop_unknown_edges=True,
        )
    return rows
