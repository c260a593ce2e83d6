"""Puts the features of a graph into the order a model was trained on, by name."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from tempergat.base import UserError, listed, one_line
from tempergat.data.dataset import Dataset, fingerprint
from tempergat.data.features import csr_tensor
from tempergat.data.tables.columns import node_columns
from tempergat.data.tables.files import find_table, iter_tables
from tempergat.data.user.options import ReadOptions, in_python


def match_features(
    dataset: Dataset, names: Sequence[str], node_type: str | None = None
) -> Dataset:
    """Reorders the features of a graph by name.

    A 0-1 feature `column=word` that the graph lacks becomes zeros where the graph has
    other words of that column.

    Args:
        dataset: The graph.
        names: The names of the features, in the order that is wanted.
        node_type: Whose features; None in a graph without node types.

    Returns:
        The graph with the features in that order. If the graph's features have no
        names, it is returned as it is, with a note.

    Raises:
        UserError: Features are missing, or there are others.
    """
    found, where = dataset.feature_names, dataset.name
    if node_type is not None:
        known = dataset.type_names.get(node_type)
        found = None if known is None else known.features
        where = f"type {node_type} of {dataset.name}"
    if found == tuple(names):
        return dataset
    if found is None:
        note = (
            f"the features of {where} have no names, so they are taken to be "
            f"in the order of training: {listed(names)}"
        )
        return replace(dataset, notes=(*dataset.notes, one_line(note)))
    encoded = {_column(name) for name in found if _is_word(name)}
    wanted = {name: position for position, name in enumerate(names)}
    unseen = [
        name
        for name in found
        if name not in wanted
        and _is_word(name)
        and any(_is_word(other) and _column(other) == _column(name) for other in names)
    ]
    if unseen:
        column, _, word = unseen[0].partition("=")
        raise UserError(
            f"{where}: {column} holds {word!r}, which no training node had; "
            "replace it by a word that was seen in training, or train again"
        )
    missing = [
        name
        for name in names
        if name not in found and not (_is_word(name) and _column(name) in encoded)
    ]
    other = [name for name in found if name not in wanted]
    _refuse_differences(where, missing, other)
    positions = np.array([wanted[name] for name in found], dtype=np.int64)
    data = copy.copy(dataset.data)
    store = data if node_type is None else data[node_type]
    store.x = _reordered(store.x, positions, len(names))
    changed = replace(dataset, data=data, fingerprint=fingerprint(data))
    if node_type is not None:
        own = replace(dataset.type_names[node_type], features=tuple(names))
        changed = replace(changed, type_names={**dataset.type_names, node_type: own})
    if node_type == dataset.target:
        changed = replace(changed, feature_names=tuple(names))
    return changed


def refuse_other_columns(
    folder: Path, names: Sequence[str], options: ReadOptions | None
) -> None:
    """Refuses a folder whose columns differ from the features a model knows.

    It reads the first line of the table of nodes, so it can say so where the features
    cannot be read. Other graphs are left alone.

    Args:
        folder: The graph.
        names: The names of the features that the model was trained on.
        options: How the graph is read.

    Raises:
        UserError: Columns are missing, or there are others.
    """
    try:
        path = find_table(folder, "nodes")
        if path is None:
            return
        piece = next(iter_tables(path))
        found = node_columns(piece, options or ReadOptions(), labelled=False).features
    except UserError:
        # What is wrong with the table itself is said by its reader.
        return
    known = {name if name in found else _column(name): None for name in names}
    missing = [name for name in known if name not in found]
    _refuse_differences(
        str(folder), missing, [name for name in found if name not in known]
    )


def _refuse_differences(where: str, missing: list[str], other: list[str]) -> None:
    parts = []
    if missing:
        parts.append(f"lacks {listed(missing)}")
    if other:
        parts.append(f"has {listed(other)}, which the model was not trained on")
    if parts:
        raise UserError(
            f"{where} {' and '.join(parts)}; name the features as in training, "
            f"or choose them with --features {in_python('features')}"
        )


def _reordered(x: Tensor, positions: np.ndarray, width: int) -> Tensor:
    """Moves column i of `x` to `positions[i]`; the columns in between are zero."""
    if x.layout != torch.sparse_csr:
        reordered = x.new_zeros((x.shape[0], width))
        reordered[:, torch.from_numpy(positions)] = x
        return reordered
    pointers = x.crow_indices().numpy()
    columns = positions[x.col_indices().numpy()]
    rows = np.repeat(np.arange(x.shape[0]), np.diff(pointers))
    order = np.lexsort((columns, rows))
    return csr_tensor(pointers, columns[order], x.values().numpy()[order], width)


def _is_word(name: str) -> bool:
    return "=" in name


def _column(name: str) -> str:
    return name.partition("=")[0]
