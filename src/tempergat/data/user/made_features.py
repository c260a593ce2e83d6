"""Node features made from the edges, for graphs that have none."""

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from tempergat.base import UserError
from tempergat.data.user.options import MadeFeatures, in_python

_WALK_LENGTH = 8
# Walks need this many multiplications per second of patience.
_MOST_STEPS = 2e10
_BLOCK = 256


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
    found = np.empty((num_nodes, _WALK_LENGTH), dtype=np.float32)
    for start in range(0, num_nodes, _BLOCK):
        nodes = np.arange(start, min(start + _BLOCK, num_nodes))
        place = np.zeros((num_nodes, len(nodes)))
        place[nodes, nodes - start] = 1.0
        for step in range(_WALK_LENGTH):
            place = matrix @ place
            found[nodes, step] = place[nodes, nodes - start]
    return torch.from_numpy(found)
