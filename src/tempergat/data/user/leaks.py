"""Finds features that give the label away."""

import numpy as np
import torch
from torch import Tensor

from tempergat.data.features import to_scipy

# Fewer nodes can have different values by chance.
_FEWEST_NODES = 20
_SAMPLE = 100


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
    candidates = _telling(_rows(x, nodes[order]), classes[order])
    if not len(candidates):
        return []
    values = np.concatenate(
        [
            _rows(x, block)[:, candidates]
            for block in torch.split(nodes, max(1, 2**22 // max(1, x.shape[1])))
        ]
    )
    return [int(candidates[column]) for column in _telling(values, classes)]


def _rows(x: Tensor, nodes: Tensor) -> np.ndarray:
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
    found: np.ndarray = np.flatnonzero((runs == len(np.unique(classes))) & ~is_mixed)
    return found
