"""The contextual stochastic block model, sampled exactly in time O(edges).

Labels are uniform and independent; each unordered pair of nodes is an edge with
probability a/n inside a class and b/n across classes, independently; a node of class
k has the features `mean_k`, then noise.

With two classes the means are -mu (class 0) and +mu (class 1), as in the paper. With
C > 2 classes they are the vertices of a regular simplex of the same norm, laid out
along the first C - 1 orthonormal cosine vectors of R^d; the first of those is constant,
so a scalar `mu` spreads the signal evenly over the coordinates when C = 2.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch_geometric.data import Data

from tempergat.base import UserError, require_memory
from tempergat.data.dataset import Dataset, Target, hash_tensors
from tempergat.data.formats.graphs import symmetrize
from tempergat.data.noise import gaussian, missing
from tempergat.data.splits import (
    DEFAULT_SPLIT,
    DEFAULT_SPLIT_SEED,
    GraphWithSplits,
    seed_sequence,
)


def csbm(
    n: int = 2000,
    a: float = 12.0,
    b: float = 4.0,
    mu: float | Sequence[float] = 1.0,
    d: int = 32,
    classes: int = 2,
    sigma: float = 1.0,
    rho: float = 0.0,
    tau: float = 1.0,
    seed: int = 0,
    split: str = DEFAULT_SPLIT,
    split_seed: int = DEFAULT_SPLIT_SEED,
) -> Dataset:
    """Samples a graph from the contextual stochastic block model.

    Args:
        n: Number of nodes.
        a: n times the probability of an edge inside a class.
        b: n times the probability of an edge across classes.
        mu: Norm of the class signal, or (two classes only) the signal vector.
        d: Number of features; the length of `mu` when that is a vector.
        classes: Number of classes.
        sigma: Standard deviation of the Gaussian noise on every coordinate.
        rho: Probability that a coordinate is lost; applied after the Gaussian noise.
        tau: Standard deviation of the value in place of a lost coordinate.
        seed: Seed of labels, edges and noise.
        split: Percentages of train/validation/test nodes.
        split_seed: Seed of the split.

    Returns:
        The graph; `data.observed` is the mask r of coordinates that were not lost,
        and `data.class_means` the class means.

    Raises:
        UserError: A parameter is out of its range.
    """
    n, d, classes = int(n), int(d), int(classes)
    _check(n, a, b, d, classes)
    means = class_means(mu, d, classes)
    label_seed, edge_seed, gaussian_seed, missing_seed = (
        int(child.generate_state(1, np.uint64)[0])
        for child in seed_sequence("seed", seed).spawn(4)
    )
    expected_edges = n * (a + (classes - 1) * b) / (2 * classes)
    require_memory(
        int(n * d * 9 + expected_edges * 64),
        f"a block model of {n} nodes, {d} features, about {expected_edges:.0f} edges",
        "lower n, d, a or b",
    )
    labels = np.random.default_rng(label_seed).integers(classes, size=n)
    edge_index = sample_edges(labels, a / n, b / n, edge_seed)
    x = torch.from_numpy(means.astype(np.float32)[labels])
    x = gaussian(x, sigma, gaussian_seed)
    x, observed = missing(x, rho, tau, missing_seed)
    data = Data(
        x=x,
        edge_index=torch.from_numpy(edge_index),
        y=torch.from_numpy(labels),
        observed=observed,
        class_means=torch.from_numpy(means.astype(np.float32)),
    )
    unsplit = Dataset(
        name="csbm",
        data=data,
        target=None,
        predicted=Target(classes),
        metric="accuracy",
        source=f"generated: contextual stochastic block model, n={n} a={a:g} b={b:g} "
        f"d={d} classes={classes} sigma={sigma:g} rho={rho:g} tau={tau:g} seed={seed}",
        fingerprint="",
        license="generated, no restriction",
    )
    return GraphWithSplits(unsplit, hash_tensors(data)).choose(split, split_seed)


def _check(n: int, a: float, b: float, d: int, classes: int) -> None:
    if n < 1:
        raise UserError(f"n is {n}; give at least one node")
    if classes < 2:
        raise UserError(f"classes is {classes}; give at least 2")
    for name, value in (("a", a), ("b", b)):
        if not 0 <= value <= n:
            raise UserError(
                f"{name} is {value}, so an edge would have probability {value / n:g}; "
                f"give 0 to n = {n}"
            )
    if d < classes - 1:
        raise UserError(
            f"d is {d}, but {classes} equally distant class means need at least "
            f"{classes - 1} features; raise d"
        )


def class_means(mu: float | Sequence[float], d: int, classes: int) -> np.ndarray:
    """The class means, one row per class, as the module's first lines define them.

    Raises:
        UserError: `mu` is a vector with more than two classes or of another length
            than `d`, or not finite.
    """
    signal = np.asarray(mu, dtype=np.float64)
    if not np.isfinite(signal).all():
        raise UserError(f"mu is {mu}; give finite numbers")
    if signal.ndim == 0:
        means: np.ndarray = _simplex(classes) @ _cosine_basis(classes - 1, d)
        return float(signal) * means
    if classes != 2:
        raise UserError(
            f"mu is a vector with {classes} classes; a vector is for two classes, "
            "give the norm of the signal instead"
        )
    if signal.shape != (d,):
        raise UserError(f"mu has shape {signal.shape}, but d is {d}; make them equal")
    return np.stack([-signal, signal])


def _simplex(classes: int) -> np.ndarray:
    """Unit vectors with pairwise inner products -1/(C-1), one row per class."""
    vertices = np.zeros((classes, classes - 1))
    for column in range(classes - 1):
        used = (vertices[column, :column] ** 2).sum()
        height = np.sqrt(1 - used)
        vertices[column, column] = -height
        inner = vertices[column + 1 :, :column] @ vertices[column, :column]
        vertices[column + 1 :, column] = (1 / (classes - 1) + inner) / height
    return vertices


def _cosine_basis(rows: int, d: int) -> np.ndarray:
    """The first orthonormal vectors of the discrete cosine transform."""
    frequency = np.arange(rows)[:, None]
    angle = np.pi * frequency * (np.arange(d) + 0.5) / d
    basis: np.ndarray = np.cos(angle) * np.sqrt(2 / d)
    basis[0] = 1 / np.sqrt(d)
    return basis


def sample_edges(
    labels: np.ndarray, p_same: float, p_different: float, seed: int
) -> np.ndarray:
    """Draws every unordered pair independently; returns both directions of each edge.

    Args:
        labels: Class of each node, from 0.
        p_same: Probability of an edge inside a class.
        p_different: Probability of an edge across classes.
        seed: Seed of the edges.

    Returns:
        An int64 array of shape (2, edges), sorted by source, then by target.
    """
    generator = np.random.default_rng(seed)
    order = np.argsort(labels, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(labels))[:-1])
    sources, targets = [], []
    for first, left in enumerate(members):
        pairs = len(left) * (len(left) - 1) // 2
        low, high = pair_of_number(_successes(generator, pairs, p_same))
        sources.append(left[low])
        targets.append(left[high])
        for right in members[first + 1 :]:
            hits = _successes(generator, len(left) * len(right), p_different)
            sources.append(left[hits // len(right)])
            targets.append(right[hits % len(right)])
    ends = np.stack([np.concatenate(sources), np.concatenate(targets)])
    # Every pair was drawn once, so there is nothing to merge.
    return symmetrize(ends, len(labels), merge=False).astype(np.int64)


def _successes(generator: np.random.Generator, trials: int, p: float) -> np.ndarray:
    """Positions of the successes among independent trials, by their geometric gaps."""
    if trials == 0 or p == 0:
        return np.empty(0, dtype=np.int64)
    blocks = []
    last = -1
    while last < trials:
        expected = (trials - last) * p
        gaps = generator.geometric(p, size=int(expected + 6 * expected**0.5) + 16)
        positions = last + np.cumsum(np.minimum(gaps, trials + 1))
        blocks.append(positions)
        last = int(positions[-1])
    positions = np.concatenate(blocks)
    return positions[: np.searchsorted(positions, trials)]


def pair_of_number(index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The pair low < high with number high (high - 1) / 2 + low."""
    high = ((1 + np.sqrt(1 + 8 * index.astype(np.float64))) / 2).astype(np.int64)
    # Beyond a hundred million nodes, the square root may round up to the next one.
    high -= high * (high - 1) // 2 > index
    return index - high * (high - 1) // 2, high
