"""Drawn scores, and the sets that procedures name, for many studies at once.

Scores are arrays [studies, seeds, methods]; sets are booleans [studies, methods].
"""

import numpy as np
import scipy
from numpy.typing import NDArray

from tempergat.stats import ALPHA

Scores = NDArray[np.float64]
Sets = NDArray[np.bool_]

_SHARED_BY_SEED = 2.0
_SHARED_BY_GROUP = 1.5
_MOST_FLIPS = 1000
_BOOTSTRAPS = 200
_RESAMPLES = 400


def true_means(truth: str, methods: int) -> NDArray[np.float64]:
    """The true means, the best first."""
    if truth == "graded":
        return np.linspace(0.0, -2.0, methods)
    return np.eye(1, methods)[0] if truth == "one better" else np.zeros(methods)


def drawn(
    random: np.random.Generator,
    shape: tuple[int, int, int],
    truth: str,
    kind: str,
    test_to_train: float,
) -> Scores:
    """Scores of many studies; see plan.yaml for the kinds.

    Args:
        random: Where they come from.
        shape: Studies, seeds and methods.
        truth: Which true means.
        kind: How scores vary.
        test_to_train: Test nodes per training node, for splits that overlap.
    """
    studies, seeds, methods = shape
    noise = random.normal(size=shape)
    if kind == "unequal":
        noise *= np.linspace(0.3, 2.0, methods)
    if kind == "groups":
        of_group = random.normal(0.0, _SHARED_BY_GROUP, (studies, seeds, 1))
        noise[:, :, : methods // 2] += of_group
    if kind == "overlap":
        # The correlation that the correction is made for.
        shared = test_to_train / (1.0 + test_to_train)
        of_method = random.normal(size=(studies, 1, methods))
        noise = np.sqrt(1.0 - shared) * noise + np.sqrt(shared) * of_method
    of_seed = random.normal(0.0, _SHARED_BY_SEED, (studies, seeds, 1))
    return true_means(truth, methods) + of_seed + noise


def t_values(scores: Scores, test_to_train: float = 0.0) -> NDArray[np.float64]:
    """Paired t of every two methods: how far the second is ahead of the first."""
    seeds, methods = scores.shape[-2:]
    means = scores.mean(axis=-2)
    centred = scores - means[..., None, :]
    covariance = np.swapaxes(centred, -1, -2) @ centred / (seeds - 1)
    own = np.einsum("...kk->...k", covariance)
    variance = own[..., :, None] + own[..., None, :] - 2.0 * covariance
    variance[..., range(methods), range(methods)] = np.inf
    error = np.sqrt(variance * (1.0 / seeds + test_to_train))
    return np.asarray((means[..., None, :] - means[..., :, None]) / error)


def best_sets(t: NDArray[np.float64], seeds: int) -> Sets:
    """The sets of `tempergat.stats.best_set`."""
    limit = -scipy.special.stdtrit(seeds - 1, ALPHA / (t.shape[-1] - 1))
    return np.asarray(t.max(axis=-1) <= limit)


def holm_sets(t: NDArray[np.float64], means: Scores, seeds: int) -> Sets:
    """The highest mean, and those not worse by Holm's correction over all pairs."""
    studies, methods = means.shape
    first, second = np.triu_indices(methods, 1)
    size = np.abs(t[:, first, second])
    order = np.argsort(-size, axis=1)
    tests = len(first)
    limits = -scipy.special.stdtrit(seeds - 1, ALPHA / 2.0 / np.arange(tests, 0, -1))
    in_order = np.take_along_axis(size, order, axis=1) > limits
    rejected = np.zeros_like(in_order)
    np.put_along_axis(rejected, order, np.logical_and.accumulate(in_order, 1), 1)
    differ = np.zeros((studies, methods, methods), dtype=bool)
    differ[:, first, second] = differ[:, second, first] = rejected
    return np.asarray(~differ[np.arange(studies), means.argmax(axis=1)])


def confidence_sets(random: np.random.Generator, scores: Scores) -> Sets:
    """The model confidence set (Hansen, Lunde and Nason, 2011), by the range.

    Seeds are drawn anew; the worst method leaves until equality is not rejected.
    """
    studies, seeds, methods = scores.shape
    counts = random.multinomial(seeds, np.full(seeds, 1.0 / seeds), _BOOTSTRAPS)
    means = scores.mean(axis=1)
    noise = counts / seeds @ scores - means[:, None, :]
    noise = noise[..., None, :] - noise[..., :, None]
    own = range(methods)
    spread = noise.std(axis=1)
    spread[:, own, own] = np.inf
    # How far the second of two methods is ahead of the first.
    t = (means[:, None, :] - means[:, :, None]) / spread
    reference = np.abs(noise / spread[:, None])
    inside = np.ones((studies, methods), dtype=bool)
    running = np.arange(studies)
    while len(running):
        kept = inside[running]
        both = kept[:, :, None] & kept[:, None, :]
        observed = np.where(both, t[running], 0.0)
        largest = (reference[running] * both[:, None]).max(axis=(2, 3))
        p = (largest >= observed.max(axis=(1, 2))[:, None]).mean(axis=1)
        goes = (p < ALPHA) & (kept.sum(axis=1) > 1)
        running = running[goes]
        inside[running, observed[goes].max(axis=2).argmax(axis=1)] = False
    return inside


def largest_t_sets(random: np.random.Generator, scores: Scores) -> Sets:
    """Sets by the distribution of the largest t, with the estimated correlation."""
    seeds = scores.shape[1]
    sets = np.empty((len(scores), scores.shape[2]), dtype=bool)
    for number, table in enumerate(scores):
        centred = (table - table.mean(axis=0)) / np.sqrt(seeds - 1)
        weights = random.normal(size=(_RESAMPLES, seeds, seeds))
        reference = t_values(weights @ centred).max(axis=-1)
        limit = np.quantile(reference, 1.0 - ALPHA, axis=0)
        sets[number] = t_values(table).max(axis=-1) <= limit
    return sets


def flipped_sets(random: np.random.Generator, scores: Scores) -> Sets:
    """Sets by flips of the signs of all differences of a seed together."""
    seeds, methods = scores.shape[1:]
    if 2**seeds <= _MOST_FLIPS + 24:
        signs = 1.0 - 2.0 * (np.arange(2**seeds)[:, None] >> np.arange(seeds) & 1)
    else:
        signs = random.choice([-1.0, 1.0], size=(_MOST_FLIPS, seeds))
        signs[0] = 1.0
    sets = []
    for method in range(methods):
        ahead = np.delete(scores - scores[:, :, [method]], method, axis=2)
        # t rises with the sum over the root of the squares, which flips leave alone.
        sums = signs @ ahead / np.sqrt((ahead**2).sum(axis=1, keepdims=True))
        largest = sums.max(axis=2)
        sets.append((largest >= largest[:, :1] - 1e-9).mean(axis=1) >= ALPHA)
    return np.stack(sets, axis=1)
