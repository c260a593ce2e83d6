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
from tempergat.data.user.options import GAP, MadeFeatures, ReadOptions, in_python

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
    matrix = matrix @ scipy.sparse.dia_array((1.0 / leaving, 0), shape)
    returned = np.empty((num_nodes, _WALK_LENGTH), dtype=np.float32)
    for start in range(0, num_nodes, _BLOCK):
        nodes = np.arange(start, min(start + _BLOCK, num_nodes))
        place = np.zeros((num_nodes, len(nodes)))
        place[nodes, nodes - start] = 1.0
        for step in range(_WALK_LENGTH):
            place = matrix @ place
            returned[nodes, step] = place[nodes, nodes - start]
    return torch.from_numpy(returned)


def telling_features(
    x: Tensor, labels: Tensor, nodes: Tensor
) -> tuple[list[int], bool]:
    """The features that tell the class of all given nodes.

    A feature tells the classes if each has a range of values apart from all others.
    Otherwise several features may do so together, if each class has a feature that
    tells it from the rest, as where the label is there once more as 0-1 columns.

    Args:
        x: Features, dense or sparse.
        labels: The class of every node.
        nodes: Which nodes count, by number.

    Returns:
        Positions of columns of `x`, and whether each of them alone tells the class.
    """
    classes = labels[nodes].numpy()
    if len(nodes) < _FEWEST_NODES or classes.min() == classes.max():
        return [], True
    # Almost every feature fails on a few nodes already.
    rng = np.random.default_rng(0)
    order = rng.choice(len(nodes), min(_SAMPLE, len(nodes)), replace=False)
    sample = _dense_rows(x, nodes[order])
    candidates = np.union1d(
        _telling(sample, classes[order]), _telling_together(sample, classes[order])
    ).astype(np.int64)
    if not len(candidates):
        return [], True
    values = np.concatenate(
        [
            _dense_rows(x, block)[:, candidates]
            for block in torch.split(nodes, max(1, 2**22 // max(1, x.shape[1])))
        ]
    )
    alone = candidates[_telling(values, classes)]
    if len(alone):
        return alone.tolist(), True
    return candidates[_telling_together(values, classes)].tolist(), False


def _telling_together(values: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The columns that tell some class from the rest, if there are some for each."""
    columns: list[np.ndarray] = []
    for number in np.unique(classes):
        columns.append(_telling(values, classes == number))
        if not len(columns[-1]):
            return np.empty(0, np.int64)
    return np.unique(np.concatenate(columns))


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
    options = dataset.read_options
    one_hot = () if options is None or node_type != dataset.target else options.one_hot
    # An option names a column in any case, so its words are called as in training.
    known = {_one_hot_column(name, one_hot): name for name in names}
    own_names = tuple(
        name
        if (column := _one_hot_column(name, one_hot)) is None or column not in known
        else known[column][: len(column)] + name[len(column) :]
        for name in own_names
    )
    wanted = {name: position for position, name in enumerate(names)}
    other = [name for name in own_names if name not in wanted]
    seen, encoded = (
        {_one_hot_column(name, one_hot) for name in several}
        for several in (names, own_names)
    )
    for name in other:
        column = _one_hot_column(name, one_hot)
        if column is not None and column in seen:
            word = name[len(f"{column}=") :]
            is_gap = word == GAP and options is not None and options.fill == "flag"
            raise UserError(
                f"{where}: {column} {'has a gap' if is_gap else f'holds {word!r}'}, "
                "which no training node had; replace it by a word that was seen in "
                "training, or train again"
            )
    missing = [
        name
        for name in names
        if name not in own_names
        and (
            (column := _one_hot_column(name, one_hot)) is None or column not in encoded
        )
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
    one_hot = () if options is None else options.one_hot
    known = {
        name if name in own_names else _one_hot_column(name, one_hot) or name: None
        for name in names
    }
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


def _one_hot_column(name: str, one_hot: Sequence[str]) -> str | None:
    """The column of words that a feature `column=word` comes from; None if it is none.

    A column of numbers may have such a name, too.
    """
    columns = (
        column for column in one_hot if name.lower().startswith(f"{column.lower()}=")
    )
    return next(columns, None)
