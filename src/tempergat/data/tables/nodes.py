"""Reads the table of nodes."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tempergat.base import UserError, require_memory
from tempergat.data.tables.columns import NodeColumns, node_columns
from tempergat.data.tables.table import (
    LEAVE_OUT,
    Table,
    as_known_text,
    as_numbers,
    as_text,
)
from tempergat.data.user.options import (
    ReadOptions,
    in_python,
    missing_numbers,
    missing_words,
)
from tempergat.data.user.split_names import TRUTH

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

    def __len__(self) -> int:
        return len(self.numbers)

    def at(self, row: int) -> str:
        """File and row, for an error."""
        return f"{self.path}, row {self.numbers[row]}"


def read_nodes(
    path: Path,
    pieces: Iterable[Table],
    options: ReadOptions,
    require_finite: bool,
    labelled: bool,
) -> Nodes:
    """Reads the table of nodes.

    Args:
        path: The file.
        pieces: The table, at least one piece of it.
        options: How it is read.
        require_finite: Whether missing values and infinity are refused as features.
        labelled: Whether there must be labels; otherwise labels and splits are not
            read.

    Raises:
        UserError: The table contradicts itself, or it is not clear which column is
            what.
    """
    missing = missing_words(options)
    columns: NodeColumns | None = None
    parts: dict[str, list[np.ndarray]] = {}
    numbers: list[np.ndarray] = []
    features: list[np.ndarray] = []
    for piece in pieces:
        if columns is None:
            columns = node_columns(piece, options, labelled)
        numbers.append(piece.numbers)
        plain = [name for name in columns.features if name not in columns.one_hot]
        if plain:
            gaps = missing_numbers(options)
            values = [as_numbers(piece, n, gaps, require_finite) for n in plain]
            features.append(np.stack(values, axis=1))
        for name, column in _other_columns(piece, columns, missing, labelled).items():
            parts.setdefault(name, []).append(column)
    # There is at least one piece.
    assert columns is not None
    joined = {name: np.concatenate(found) for name, found in parts.items()}
    rows = np.concatenate(numbers)
    if not len(rows):
        raise UserError(f"{path} has no rows; a graph needs at least one node")
    nodes = Nodes(
        path=path,
        columns=columns,
        numbers=rows,
        features=np.concatenate(features) if features else None,
        feature_names=tuple(n for n in columns.features if n not in columns.one_hot),
        labels=joined.get("label"),
        splits=joined.get("split"),
        masks={mask: joined[mask] for mask in columns.masks if mask in joined},
    )
    if columns.one_hot:
        words = {name: joined[f"word {name}"] for name in columns.one_hot}
        nodes.features, nodes.feature_names = _encoded(nodes, words)
    nodes.ids = _index_of_ids(nodes, joined.get("id"), joined.get("raw id"))
    return nodes


def _other_columns(
    piece: Table, columns: NodeColumns, missing: frozenset[str], labelled: bool
) -> dict[str, np.ndarray]:
    """The columns of a piece that are not features, or are words."""
    found = {}
    if columns.id is not None:
        found["raw id"] = as_text(piece.columns[columns.id])
        found["id"] = as_known_text(piece.columns[columns.id], missing)
    for name in columns.one_hot:
        found[f"word {name}"] = as_known_text(piece.columns[name], missing)
    if not labelled:
        return found
    if columns.label is not None:
        found["label"] = as_text(piece.columns[columns.label])
    if columns.split is not None:
        found["split"] = as_known_text(piece.columns[columns.split], missing)
    for mask, name in columns.masks.items():
        found[mask] = read_mask(piece, name, missing)
    return found


def read_mask(piece: Table, name: str, missing: frozenset[str]) -> np.ndarray:
    """A column of 0 and 1, or words like yes and no, where nothing is 0.

    Raises:
        UserError: It holds something else.
    """
    remedy = (
        "write 0 or 1, or choose another column with --split-column "
        f"{in_python('split_column')}"
    )
    texts = as_text(piece.columns[name])
    column = np.array([TRUTH.get(text.lower(), text) for text in texts], dtype=object)
    plain = replace(piece, columns={name: column})
    values = as_numbers(plain, name, missing, False, remedy)
    values = np.nan_to_num(values)
    wrong = np.flatnonzero((values != 0) & (values != 1))
    if len(wrong):
        row = int(wrong[0])
        raise UserError(
            f"{piece.at(row)}: {name} is {piece.columns[name][row]!r}, but a mask is 0 "
            f"or 1; {remedy}"
        )
    mask: np.ndarray = values == 1
    return mask


def _encoded(
    nodes: Nodes, words: dict[str, np.ndarray]
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
        if len(gaps):
            raise UserError(
                f"{nodes.at(int(gaps[0]))}: {name} is missing; fill it, drop the row, "
                f"or {LEAVE_OUT}"
            )
        different = sorted(set(texts.tolist()))
        if len(different) > _MOST_WORDS:
            raise UserError(
                f"{nodes.path}: {name} holds {len(different)} different words, more "
                f"than the {_MOST_WORDS} that --one-hot encodes; {LEAVE_OUT}"
            )
        require_memory(
            4 * len(texts) * len(different),
            f"the {len(different)} words of {name} as 0-1 features",
            LEAVE_OUT,
        )
        names += [f"{name}={word}" for word in different]
        columns += [(texts == word).astype(np.float32) for word in different]
    return np.stack(columns, axis=1), tuple(names)


def _index_of_ids(
    nodes: Nodes, ids: np.ndarray | None, written: np.ndarray | None
) -> Any:
    import pandas

    if ids is None or written is None:
        return pandas.Index([str(row) for row in range(len(nodes))], dtype=object)
    index = pandas.Index(ids, dtype=object)
    column = nodes.columns.id
    for row in np.flatnonzero((ids == "") | index.duplicated()).tolist():
        if ids[row]:
            first = int(np.flatnonzero(ids == ids[row])[0])
            raise UserError(
                f"{nodes.at(row)}: {column} {ids[row]!r} is also that of row "
                f"{nodes.numbers[first]}; give every node its own, or choose another "
                f"column with --id {in_python('id')}"
            )
        word, remedy = "empty", ""
        if written[row]:
            word = f"{written[row]!r}, a word for a missing value"
            remedy = "; or change the words with --missing"
        raise UserError(f"{nodes.at(row)}: {column} is {word}; name every node{remedy}")
    return index
