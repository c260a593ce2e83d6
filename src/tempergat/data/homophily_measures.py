"""How similar neighbours are: homophily, and the H2Index of a heterogeneous graph.

Edges with an unlabelled end are left out of every measure here, unless the H2Index is
asked for as H2GB computes it.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse
from torch import Tensor
from torch_geometric.data import HeteroData

from tempergat.base import UserError
from tempergat.data.dataset import UNLABELLED

Unlabelled = Literal["left out", "random"]

# Most two-step paths that are followed (about 2 s); beyond, the H2Index is estimated.
_MAX_PATHS = 20_000_000
# An estimate's error is that of leaving out one of so many groups of nodes.
_GROUPS = 20
_PATHS_PER_BLOCK = 500_000


@dataclass(frozen=True)
class Homophily:
    """Three measures; None where there is no edge or no second class to compare.

    Attributes:
        edge: Share of edges whose ends have the same class.
        node: Mean over nodes of the share of neighbours of their own class; nodes
            without a labelled neighbour are left out.
        adjusted: `edge` beyond what the classes' in-degrees would give by chance,
            divided by the most it could be: 0 is chance, 1 has all edges inside
            classes. In a directed graph out-degrees play no part.
    """

    edge: float | None
    node: float | None
    adjusted: float | None


def homophily(
    edge_index: np.ndarray | Tensor, labels: np.ndarray | Tensor
) -> Homophily:
    """The homophily of directed edges, given both ways where they are undirected.

    Self-loops are left out.

    Args:
        edge_index: Sources, then targets, of shape (2, edges).
        labels: Class of each node, -1 where there is none.
    """
    source, target = _as_array(edge_index)
    labels = _as_array(labels)
    known = (labels[source] != UNLABELLED) & (labels[target] != UNLABELLED)
    known &= source != target
    source, target = source[known], target[known]
    if len(source) == 0:
        return Homophily(None, None, None)
    same = labels[source] == labels[target]
    received = np.bincount(target, minlength=len(labels))
    alike = np.bincount(target, weights=same, minlength=len(labels))
    reached = received > 0
    degrees = np.bincount(labels[target]).astype(np.float64)
    edge = float(same.mean())
    return Homophily(
        edge=edge,
        node=float((alike[reached] / received[reached]).mean()),
        adjusted=_adjust(edge, degrees),
    )


def _as_array(values: np.ndarray | Tensor) -> np.ndarray:
    return values.numpy(force=True) if isinstance(values, Tensor) else values


def _adjust(edge: float, degrees: np.ndarray) -> float | None:
    """Adjusted homophily from edge homophily and each class's share of degrees."""
    chance = float(((degrees / degrees.sum()) ** 2).sum())
    return None if chance == 1 else (edge - chance) / (1 - chance)


def h2_index(
    data: HeteroData,
    target: str,
    unlabelled: Unlabelled = "left out",
    seed: int = 0,
) -> float | None:
    """The class-adjusted heterogeneous heterophily index of H2GB.

    Every pair of edge types that leads from the target type back to it makes a graph
    among target nodes: an edge wherever there is such a path. The index is one minus
    the mean of those graphs' adjusted homophily, so larger is more heterophilic.

    Args:
        data: The graph.
        target: Node type that has the labels.
        unlabelled: "left out", or "random" to give each node without a label a class
            drawn at random, as H2GB's code does.
        seed: What classes are drawn with, and where there are over twenty million
            paths the nodes that are followed.

    Returns:
        The index, or None where no path has labelled ends. It is an estimate where
        there are over twenty million paths; `estimate_h2_index` has its error.

    Raises:
        UserError: `unlabelled` is neither of the two.
    """
    estimate = estimate_h2_index(data, target, seed, unlabelled)
    return None if estimate is None else estimate[0]


def estimate_h2_index(
    data: HeteroData, target: str, seed: int = 0, unlabelled: Unlabelled = "left out"
) -> tuple[float, float] | None:
    """The H2Index and its standard error, which is 0 where every path is followed.

    Of a pair of edge types with more than twenty million paths, those are followed that
    begin at nodes drawn at random. The error is that of these draws, not of classes
    drawn for nodes without a label.

    Args:
        data: The graph.
        target: Node type that has the labels.
        seed: What nodes and classes are drawn with.
        unlabelled: As in `h2_index`.
    """
    if unlabelled not in ("left out", "random"):
        raise UserError(
            f'unlabelled is {unlabelled!r}; give "left out" or "random" (a class drawn)'
        )
    if target not in data.node_types or "y" not in data[target]:
        raise UserError(
            f"the graph has no labels of node type {target!r}; its node types are "
            f"{', '.join(data.node_types)}, and labels are in data[type].y"
        )
    labels = data[target].y.numpy()
    if unlabelled == "random" and labels.max() > UNLABELLED:
        drawn = np.random.default_rng(seed).integers(labels.max() + 1, size=len(labels))
        labels = np.where(labels == UNLABELLED, drawn, labels)
    values, variance = [], 0.0
    for first in data.edge_types:
        for second in data.edge_types:
            if first[0] == target and first[2] == second[0] and second[2] == target:
                step = _adjacency(data, first), _adjacency(data, second)
                homophilies = _path_homophilies(*step, labels, seed)
                if homophilies is not None:
                    whole, parts = homophilies
                    values.append(whole)
                    spread = np.square(parts - parts.mean()).sum()
                    variance += spread * (len(parts) - 1) / len(parts)
    if not values:
        return None
    return 1 - float(np.mean(values)), float(np.sqrt(variance)) / len(values)


def _adjacency(data: HeteroData, kind: tuple[str, str, str]) -> scipy.sparse.csr_array:
    source, target = data[kind].edge_index.numpy()
    shape = (int(data[kind[0]].num_nodes), int(data[kind[2]].num_nodes))
    ones = np.ones(len(source), dtype=np.float32)
    return scipy.sparse.csr_array((ones, (source, target)), shape=shape)


def _num_paths(
    first: scipy.sparse.csr_array, second: scipy.sparse.csr_array
) -> np.ndarray:
    """Number of two-step paths from each node."""
    reached = np.concatenate([[0], np.cumsum(np.diff(second.indptr)[first.indices])])
    return np.diff(reached[first.indptr])


def _path_homophilies(
    first: scipy.sparse.csr_array,
    second: scipy.sparse.csr_array,
    labels: np.ndarray,
    seed: int,
) -> tuple[float, np.ndarray] | None:
    """The adjusted homophily of paths, and that without each group of first nodes."""
    nodes = np.arange(len(labels))
    paths = _num_paths(first, second)
    if paths.sum() <= _MAX_PATHS:
        whole = _adjust_sums(_path_sums(first, second, nodes, labels))
        return None if whole is None else (whole, np.array([whole]))
    order = np.random.default_rng(seed).permutation(nodes)
    count = int(np.searchsorted(np.cumsum(paths[order]), _MAX_PATHS))
    groups = np.array_split(order[: max(count, _GROUPS)], _GROUPS)
    sums = np.stack([_path_sums(first, second, group, labels) for group in groups])
    whole = _adjust_sums(sums.sum(axis=0))
    parts = [_adjust_sums(sums.sum(axis=0) - group) for group in sums]
    known = np.array([part for part in parts if part is not None])
    return None if whole is None else (whole, known)


def _path_sums(
    first: scipy.sparse.csr_array,
    second: scipy.sparse.csr_array,
    nodes: np.ndarray,
    labels: np.ndarray,
) -> np.ndarray:
    """Pairs that paths from some nodes join: all, those of one class, ends by class."""
    labelled = labels != UNLABELLED
    classes = int(labels.max()) + 1
    first = first[nodes]
    paths = np.cumsum(_num_paths(first, second))
    sums = np.zeros(2 + classes)
    start = 0
    while start < len(nodes):
        done = paths[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(paths, done + _PATHS_PER_BLOCK)))
        block = (first[start:stop] @ second).tocoo()
        rows, columns = nodes[block.row + start], block.col
        known = labelled[rows] & labelled[columns]
        ends = labels[columns[known]]
        sums[0] += len(ends)
        sums[1] += int((labels[rows[known]] == ends).sum())
        sums[2:] += np.bincount(ends, minlength=classes)
        start = stop
    return sums


def _adjust_sums(sums: np.ndarray) -> float | None:
    return _adjust(sums[1] / sums[0], sums[2:]) if sums[0] else None
