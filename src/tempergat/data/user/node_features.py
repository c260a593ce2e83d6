"""Node features: made from the edges, looked through for the label, matched by name."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from tempergat.base import UserError, listed, one_line
from tempergat.data.dataset import Dataset, fingerprint
from tempergat.data.features import csr_tensor, to_scipy
from tempergat.data.tables.columns import node_columns
from tempergat.data.tables.files import find_table, iter_tables
from tempergat.data.user.options import MadeFeatures, ReadOptions, in_python

_WALK_LENGTH = 8
# Walks need this many multiplications per second of patience.
_MOST_STEPS = 2e10
_BLOCK = 256
# Fewer nodes can tell a class by chance.
_FEWEST_NODES = 20
_SAMPLE = 100


def make_features(
    kind: MadeFeatures, source: str, edge_index: np.ndarray, num_nodes: int
) -> tuple[Tensor, tuple[str, ...]]:
    """Makes features from the edges.

    `degree` is the logarithm of one plus the number of incoming and outgoing edges,
    `constant` is 1 for every node, and `random-walk` is the probability that a random
    walk of 1 to 8 steps ends where it began.

    Args:
        kind: Which features.
        source: Where the graph came from, for errors.
        edge_index: The edges.
        num_nodes: How many nodes there are.

    Returns:
        The features, and their names.

    Raises:
        UserError: The graph is too large for random walks.
    """
    if kind == "constant":
        return torch.ones(num_nodes, 1), ("constant",)
    if kind == "degree":
        incoming = np.bincount(edge_index[1], minlength=num_nodes)
        outgoing = np.bincount(edge_index[0], minlength=num_nodes)
        degrees = np.log1p(np.stack([incoming, outgoing], axis=1), dtype=np.float32)
        return torch.from_numpy(degrees), ("log in-degree", "log out-degree")
    steps = _WALK_LENGTH * float(edge_index.shape[1]) * num_nodes
    if steps > _MOST_STEPS:
        raise UserError(
            f"{source} has {num_nodes} nodes and {edge_index.shape[1]} edges, too many "
            f"for --make-features random-walk; choose degree "
            f"{in_python('make_features')}"
        )
    names = tuple(f"return after {step}" for step in range(1, _WALK_LENGTH + 1))
    return _return_probabilities(edge_index, num_nodes), names


def _return_probabilities(edge_index: np.ndarray, num_nodes: int) -> Tensor:
    """The diagonals of the first powers of the transition matrix."""
    ones = np.ones(edge_index.shape[1])
    shape = (num_nodes, num_nodes)
    matrix = scipy.sparse.csr_array((ones, (edge_index[1], edge_index[0])), shape)
    leaving = np.maximum(matrix.sum(axis=0), 1.0)
    matrix = matrix @ scipy.sparse.diags_array(1.0 / leaving)
    returned = np.empty((num_nodes, _WALK_LENGTH), dtype=np.float32)
    for start in range(0, num_nodes, _BLOCK):
        nodes = np.arange(start, min(start + _BLOCK, num_nodes))
        place = np.zeros((num_nodes, len(nodes)))
        place[nodes, nodes - start] = 1.0
        for step in range(_WALK_LENGTH):
            place = matrix @ place
            returned[nodes, step] = place[nodes, nodes - start]
    return torch.from_numpy(returned)


def telling_features(x: Tensor, labels: Tensor, nodes: Tensor) -> list[int]:
    """The features each of which alone tells the class of all given nodes.

    Such a feature has a range of values for every class, apart from all others.

    Args:
        x: Features, dense or sparse.
        labels: The class of every node.
        nodes: Which nodes count, by number.

    Returns:
        Positions of columns of `x`.
    """
    classes = labels[nodes].numpy()
    if len(nodes) < _FEWEST_NODES or classes.min() == classes.max():
        return []
    # Almost every feature fails on a few nodes already.
    rng = np.random.default_rng(0)
    order = rng.choice(len(nodes), min(_SAMPLE, len(nodes)), replace=False)
    candidates = _telling(_dense_rows(x, nodes[order]), classes[order])
    if not len(candidates):
        return []
    values = np.concatenate(
        [
            _dense_rows(x, block)[:, candidates]
            for block in torch.split(nodes, max(1, 2**22 // max(1, x.shape[1])))
        ]
    )
    return [int(candidates[column]) for column in _telling(values, classes)]


def _dense_rows(x: Tensor, nodes: Tensor) -> np.ndarray:
    if x.layout != torch.sparse_csr:
        return x[nodes].numpy()
    # torch cannot index rows of a CSR tensor.
    rows: np.ndarray = to_scipy(x)[nodes.numpy()].toarray()
    return rows


def _telling(values: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Columns in whose order the nodes of every class stand together."""
    order = np.argsort(values, axis=0, kind="stable")
    ranked = np.take_along_axis(values, order, axis=0)
    kinds = classes[order]
    changes = kinds[1:] != kinds[:-1]
    runs = changes.sum(axis=0) + 1
    # Nodes of equal values are one group.
    is_mixed = (changes & (ranked[1:] == ranked[:-1])).any(axis=0)
    columns: np.ndarray = np.flatnonzero((runs == len(np.unique(classes))) & ~is_mixed)
    return columns


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
    own_names, where = dataset.feature_names, dataset.name
    if node_type is not None:
        of_type = dataset.type_names.get(node_type)
        own_names = None if of_type is None else of_type.features
        where = f"type {node_type} of {dataset.name}"
    if own_names == tuple(names):
        return dataset
    if own_names is None:
        note = (
            f"the features of {where} have no names, so they are taken to be "
            f"in the order of training: {listed(names)}"
        )
        return replace(dataset, notes=(*dataset.notes, one_line(note)))
    wanted = {name: position for position, name in enumerate(names)}
    other = [name for name in own_names if name not in wanted]
    seen, encoded = _one_hot_columns(names), _one_hot_columns(own_names)
    for name in other:
        column, _, word = name.partition("=")
        if column in seen and name != column:
            raise UserError(
                f"{where}: {column} holds {word!r}, which no training node had; "
                "replace it by a word that was seen in training, or train again"
            )
    missing = [
        name
        for name in names
        if name not in own_names and not ("=" in name and _column(name) in encoded)
    ]
    _refuse_differences(where, missing, other)
    positions = np.array([wanted[name] for name in own_names], dtype=np.int64)
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
        first = next(iter_tables(path))
        own_names = node_columns(first, options or ReadOptions(), False).features
    except UserError:
        # What is wrong with the table itself is said by its reader.
        return
    known = {name if name in own_names else _column(name): None for name in names}
    missing = [name for name in known if name not in own_names]
    other = [name for name in own_names if name not in known]
    _refuse_differences(str(folder), missing, other)


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


def _column(name: str) -> str:
    return name.partition("=")[0]


def _one_hot_columns(names: Sequence[str]) -> set[str]:
    """The columns of the features that are called `column=word`."""
    return {_column(name) for name in names if "=" in name}
