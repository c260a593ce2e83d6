"""How far apart the classes of a graph lie in its features, before any training.

Labels of training nodes are used, and no others.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from scipy import stats as scipy_stats
from torch import Tensor

from tempergat.data.dataset import Dataset
from tempergat.data.features import to_dense, to_scipy

FALSE_DISCOVERIES = 0.05
_ROUNDING = 1e-12
# Most values of features that are measured; beyond, nodes are drawn at random.
_MOST_VALUES = 20_000_000

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
class FeatureSignal:
    """What the features of a graph say about its classes.

    Attributes:
        nodes: How many labelled training nodes were measured.
        own: Separability of the nodes' own features.
        neighbours: Separability of the means over each node and its neighbours.
    """

    nodes: int
    own: Separability
    neighbours: Separability


def feature_signal(dataset: Dataset, scale: bool = True) -> FeatureSignal:
    """Measures the features of a graph without node types.

    Args:
        dataset: The graph.
        scale: Whether columns of tables are scaled, as for training.
    """
    data, x = dataset.data, dataset.data.x
    chosen = np.flatnonzero((data.train_mask & (data.y >= 0)).numpy())
    most = max(_MOST_VALUES // max(x.shape[1], 1), 1)
    if len(chosen) > most:
        chosen = np.random.default_rng(0).permutation(chosen)[:most]
    scaling = dataset.scaling.get(".x") if scale else None
    if scaling is not None:
        x = scaling.on(x.device)(x)
    labels = data.y.numpy()[chosen]
    means = _neighbour_means(x, data.edge_index.numpy(), chosen)
    return FeatureSignal(
        len(chosen),
        separability(_rows(x, chosen), labels),
        separability(means, labels),
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
        return np.asarray(to_scipy(x)[chosen].todense(), dtype=np.float64)
    return np.asarray(x[torch.from_numpy(chosen)].numpy(), dtype=np.float64)


def _neighbour_means(
    x: Tensor, edges: NDArray[np.int64], chosen: NDArray[np.int64]
) -> Array:
    """Means over each chosen node and the sources of its incoming edges."""
    place = np.full(x.shape[0], -1)
    place[chosen] = np.arange(len(chosen))
    source, target = edges[:, place[edges[1]] >= 0]
    ends = (np.append(place[target], place[chosen]), np.append(source, chosen))
    shape = (len(chosen), x.shape[0])
    rows = scipy.sparse.csr_array((np.ones(len(ends[0])), ends), shape=shape)
    per_row = (1 / rows.sum(axis=1), 0), (len(chosen), len(chosen))
    weights = scipy.sparse.dia_array(*per_row) @ rows
    if x.layout == torch.sparse_csr:
        return np.asarray((weights @ to_scipy(x)).todense(), dtype=np.float64)
    return np.asarray(weights @ to_dense(x).numpy(), dtype=np.float64)
