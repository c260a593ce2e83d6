"""Measurements of a graph before training: feature signal, homophily, density.

Features are measured with the labels of training nodes only, edges with those of
training and validation nodes. Test nodes are not used.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from scipy import stats as scipy_stats
from torch import Tensor

from tempergat.data import Dataset, density, homophily, to_dense
from tempergat.training import RunConfig, row_transform

FALSE_DISCOVERIES = 0.05
_ROUNDING = 1e-12

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Separability:
    """How far apart the classes are, coordinate by coordinate.

    Attributes:
        signal_to_noise: Variance between class means over variance within classes,
            summed over all coordinates, less what chance contributes; None where
            training nodes are too few or do not vary within classes.
        reliable_share: Share of coordinates whose class means differ (F-test, at most
            5 % false discoveries); None where training nodes are too few or do not
            vary.
        top_tenth_share: Share of the signal in the best tenth of the coordinates;
            None without signal.
    """

    signal_to_noise: float | None
    reliable_share: float | None
    top_tenth_share: float | None


@dataclass(frozen=True)
class Measurements:
    """A graph in numbers.

    Attributes:
        nodes: Number of nodes.
        edges: Number of directed edges.
        train_nodes: Labelled training nodes.
        features: Features per node.
        density: Share of feature entries that are not zero.
        own: Separability of the nodes' own features.
        neighbours: Separability of the means over each node and its neighbours.
        edge_homophily: Share of edges inside a class; None without labelled edges.
        adjusted_homophily: The same corrected for chance: 0 is chance, 1 means that
            all edges are inside a class.
        labelled_edges: Edges between training or validation nodes.
        mean_degree: Incoming edges per node.
    """

    nodes: int
    edges: int
    train_nodes: int
    features: int
    density: float
    own: Separability
    neighbours: Separability
    edge_homophily: float | None
    adjusted_homophily: float | None
    labelled_edges: int
    mean_degree: float


def measure(dataset: Dataset, config: RunConfig | None = None) -> Measurements:
    """Measure a homogeneous graph.

    Args:
        dataset: The graph.
        config: Settings that scale or normalise its features first; None for features
            as given.
    """
    data, x = dataset.data, dataset.data.x
    if config is not None:
        transform = row_transform(config, dataset.scaling, x.device)
        x = x if transform is None else transform(x)
    labels = data.y.numpy()
    chosen = np.flatnonzero((data.train_mask & (data.y >= 0)).numpy())
    visible = (data.train_mask | data.val_mask).numpy()
    edges = data.edge_index.numpy()
    between_visible = edges[:, visible[edges[0]] & visible[edges[1]]]
    measured = homophily(between_visible, np.where(visible, labels, -1))
    return Measurements(
        nodes=int(data.num_nodes),
        edges=int(edges.shape[1]),
        train_nodes=len(chosen),
        features=int(x.shape[1]),
        density=density(x),
        own=separability(_rows(x, chosen), labels[chosen]),
        neighbours=separability(_neighbour_means(x, edges, chosen), labels[chosen]),
        edge_homophily=measured.edge,
        adjusted_homophily=measured.adjusted,
        labelled_edges=int(between_visible.shape[1]),
        mean_degree=edges.shape[1] / max(int(data.num_nodes), 1),
    )


def separability(x: Array, labels: NDArray[np.int64]) -> Separability:
    """One-way analysis of variance of every coordinate.

    Args:
        x: Features, one row per node.
        labels: The nodes' classes.
    """
    classes, members, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    nodes, groups = len(labels), len(classes)
    if groups < 2 or nodes <= groups:
        return Separability(None, None, None)
    one_hot = scipy.sparse.csr_array(
        (np.ones(nodes), (members, np.arange(nodes))), shape=(groups, nodes)
    )
    means = np.asarray(one_hot @ x) / sizes[:, None]
    overall = x.mean(axis=0)
    between = (sizes[:, None] * (means - overall) ** 2).sum(axis=0) / (groups - 1)
    within = ((x - means[members]) ** 2).sum(axis=0) / (nodes - groups)
    # Rounding errors of a constant coordinate are not variance.
    least = _ROUNDING * (x**2).mean(axis=0)
    within, between = (np.where(v > least, v, 0.0) for v in (within, between))
    varies = within + between > 0
    if not varies.any():
        return Separability(None, None, None)
    between, within = between[varies], within[varies]
    # Effective number of nodes per class in the expected mean square between classes.
    per_class = (nodes - (sizes**2).sum() / nodes) / (groups - 1)
    signal = (between - within) / per_class
    total = float(signal.sum())
    with np.errstate(divide="ignore"):
        ratio = between / within
    p = scipy_stats.f.sf(ratio, groups - 1, nodes - groups)
    reliable = scipy_stats.false_discovery_control(p) < FALSE_DISCOVERIES
    noise = float(within.sum())
    return Separability(
        signal_to_noise=max(total, 0.0) / noise if noise > 0 else None,
        reliable_share=float(reliable.sum()) / x.shape[1],
        top_tenth_share=_top_tenth(signal) if total > 0 else None,
    )


def _top_tenth(signal: Array) -> float:
    positive = np.sort(np.maximum(signal, 0.0))[::-1]
    count = max(1, round(len(positive) / 10))
    return float(positive[:count].sum() / positive.sum())


def _rows(x: Tensor, chosen: NDArray[np.int64]) -> Array:
    if x.layout == torch.sparse_csr:
        return np.asarray(_csr(x)[chosen].todense(), dtype=np.float64)
    return np.asarray(x[torch.from_numpy(chosen)].numpy(), dtype=np.float64)


def _neighbour_means(
    x: Tensor, edges: NDArray[np.int64], chosen: NDArray[np.int64]
) -> Array:
    """Means over each chosen node and the sources of its incoming edges."""
    nodes = x.shape[0]
    source = np.concatenate([edges[0], np.arange(nodes)])
    target = np.concatenate([edges[1], np.arange(nodes)])
    ones = np.ones(len(source))
    incoming = scipy.sparse.csr_array((ones, (target, source)), shape=(nodes, nodes))
    rows = incoming[chosen]
    weights = scipy.sparse.diags_array(1 / rows.sum(axis=1)) @ rows
    if x.layout == torch.sparse_csr:
        return np.asarray((weights @ _csr(x)).todense(), dtype=np.float64)
    return np.asarray(weights @ to_dense(x).numpy(), dtype=np.float64)


def _csr(x: Tensor) -> scipy.sparse.csr_array:
    parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
    return scipy.sparse.csr_array(parts, shape=(x.shape[0], x.shape[1]))
