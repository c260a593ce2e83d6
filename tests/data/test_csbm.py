"""The block model: exact in distribution, and the same for the same seed."""

import numpy as np
import pytest
import torch
from scipy import stats

from tempergat.base.errors import UserError
from tempergat.data import csbm, load
from tempergat.data.block_model import class_means, pair_of_number, sample_edges
from tempergat.data.dataset import hash_array

# Seeds are fixed, so these bounds are not a matter of luck; they leave a chance of one
# in a million to a correct sampler with other seeds.
LEVEL = 1e-6


def test_every_pair_is_an_edge_with_its_own_probability() -> None:
    labels = np.array([0, 1, 0, 1, 1, 0, 2])
    n, repetitions = len(labels), 4000
    counts = np.zeros((n, n))
    for seed in range(repetitions):
        source, target = sample_edges(labels, 0.6, 0.2, seed)
        counts[source, target] += 1
    assert np.array_equal(counts, counts.T)
    assert not np.diag(counts).any()
    for i in range(n):
        for j in range(i):
            p = 0.6 if labels[i] == labels[j] else 0.2
            test = stats.binomtest(int(counts[i, j]), repetitions, p)
            assert test.pvalue > LEVEL, (i, j)


def test_pairs_are_independent() -> None:
    labels = np.zeros(3, dtype=np.int64)
    patterns = np.zeros(8, dtype=np.int64)
    for seed in range(8000):
        source, target = sample_edges(labels, 0.5, 0.0, seed)
        present = {tuple(sorted(pair)) for pair in zip(source, target, strict=True)}
        bits = [pair in present for pair in ((0, 1), (0, 2), (1, 2))]
        patterns[int(np.dot(bits, [1, 2, 4]))] += 1
    assert stats.chisquare(patterns).pvalue > LEVEL


@pytest.mark.parametrize("first", [1, 10**6, 3 * 10**8, 10**9])
def test_pairs_are_numbered_without_gaps_at_any_size(first: int) -> None:
    high = np.arange(first, first + 1000)
    number = high * (high - 1) // 2
    for low in (np.zeros_like(high), high - 1):
        found_low, found_high = pair_of_number(number + low)
        assert np.array_equal(found_low, low)
        assert np.array_equal(found_high, high)


def test_number_of_edges_of_each_kind_is_binomial() -> None:
    dataset = csbm(n=3000, a=9, b=3, classes=3, d=4, seed=5)
    source, target = dataset.data.edge_index.numpy()
    labels = dataset.data.y.numpy()
    sizes = np.bincount(labels)
    inside = int((sizes * (sizes - 1) // 2).sum())
    across = 3000 * 2999 // 2 - inside
    same = int((labels[source] == labels[target]).sum()) // 2
    other = len(source) // 2 - same
    assert stats.binomtest(same, inside, 9 / 3000).pvalue > LEVEL
    assert stats.binomtest(other, across, 3 / 3000).pvalue > LEVEL
    assert stats.chisquare(sizes).pvalue > LEVEL


def test_graph_is_undirected_simple_and_sorted() -> None:
    data = csbm(n=500, a=30, b=10, seed=1).data
    assert data.is_undirected()
    assert not data.has_self_loops()
    assert data.is_coalesced()


@pytest.mark.parametrize(("a", "b"), [(50.0, 0.0), (0.0, 50.0), (50.0, 50.0)])
def test_certain_and_impossible_edges(a: float, b: float) -> None:
    data = csbm(n=50, a=a, b=b, d=2).data
    sizes = np.bincount(data.y.numpy())
    inside = int((sizes * (sizes - 1)).sum())
    across = 50 * 49 - inside
    assert data.num_edges == (inside if a else 0) + (across if b else 0)


def test_two_class_means_are_plus_and_minus_mu() -> None:
    mu = [0.5, -1.0, 2.0]
    data = csbm(n=40, a=4, b=1, mu=mu, d=3, sigma=0.0).data
    assert torch.equal(data.x, (2.0 * data.y[:, None] - 1) * torch.tensor(mu))
    spread = csbm(n=40, a=4, b=1, mu=3.0, d=9, sigma=0.0).data
    assert torch.allclose(spread.x[spread.y == 1], torch.ones(9))


@pytest.mark.parametrize("classes", [2, 3, 5, 9])
def test_class_means_are_a_regular_simplex(classes: int) -> None:
    means = class_means(2.0, 12, classes)
    inner = means @ means.T
    expected = np.full((classes, classes), -4 / (classes - 1))
    np.fill_diagonal(expected, 4)
    assert np.allclose(inner, expected)


def test_features_have_the_noise_the_paper_names() -> None:
    data = csbm(n=4000, a=2, b=1, mu=1.0, d=8, sigma=0.7, rho=0.3, tau=2.0, seed=2).data
    means = data.class_means[data.y]
    kept = ((data.x - means)[data.observed] / 0.7).numpy()
    lost = (data.x[~data.observed] / 2.0).numpy()
    assert stats.kstest(kept, "norm").pvalue > LEVEL
    assert stats.kstest(lost, "norm").pvalue > LEVEL
    share = stats.binomtest(int((~data.observed).sum()), data.x.numel(), 0.3)
    assert share.pvalue > LEVEL


def test_same_seed_gives_the_same_graph_and_load_takes_the_parameters() -> None:
    first = csbm(n=300, a=10, b=2, seed=4)
    second = load("csbm", n=300, a=10, b=2, seed=4)
    assert first.fingerprint == second.fingerprint
    assert first.fingerprint != csbm(n=300, a=10, b=2, seed=5).fingerprint
    split = load("csbm", n=300, a=10, b=2, seed=4, split_seed=1)
    assert torch.equal(split.data.x, first.data.x)
    assert not torch.equal(split.data.train_mask, first.data.train_mask)


def test_fingerprint_is_the_same_on_every_machine() -> None:
    expected = "5066f27d23ff407e26dba1cdea0dbf05c3eca016693941ded9504ea837effd55"
    assert csbm().fingerprint == expected


def test_fingerprint_is_the_same_in_every_width_of_integers() -> None:
    wide = np.arange(10).reshape(2, 5)
    assert hash_array(wide) == hash_array(wide.astype(np.int32))
    assert hash_array(wide) != hash_array(wide.T)
    assert hash_array(wide) != hash_array(wide.astype(np.float64))


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"n": 0}, "n is 0"),
        ({"a": 3000.0}, "a is 3000.0"),
        ({"b": -1.0}, "b is -1.0"),
        ({"a": float("nan")}, "a is nan"),
        ({"classes": 1}, "classes is 1"),
        ({"classes": 40, "d": 32}, "d is 32"),
        ({"mu": [1.0, 2.0]}, "mu has shape"),
        ({"mu": [1.0] * 32, "classes": 3}, "mu is a vector"),
        ({"mu": float("inf")}, "mu is inf"),
        ({"sigma": -1.0}, "sigma is -1.0"),
        ({"rho": 1.5}, "rho is 1.5"),
        ({"tau": -0.1}, "tau is -0.1"),
        ({"n": 10**9, "d": 10**6}, "GiB"),
        ({"seed": -1}, "seed is -1"),
        ({"split_seed": -1}, "split_seed is -1"),
        ({"seed": 0.5}, "seed is 0.5"),
        ({"colour": 1}, "colour"),
    ],
)
def test_senseless_parameters_are_named(
    parameters: dict[str, object], named: str
) -> None:
    with pytest.raises(UserError, match=named):
        load("csbm", **parameters)  # type: ignore[arg-type]
