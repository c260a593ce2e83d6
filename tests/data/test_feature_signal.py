"""How far apart the classes of a graph lie in its features."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tempergat.data import csbm, feature_signal
from tempergat.data.feature_signal import Separability, separability
from tempergat.data.features import as_layout
from tempergat.data.user.report import check_graph
from tests.support.company_graph import write_companies
from tests.support.tiny_graph import write_graph


def measured(graph, scale=True):
    return feature_signal.feature_signal(graph, scale)


def test_the_signal_to_noise_of_the_block_model_is_recovered() -> None:
    # Two classes at -mu and +mu: variance 2 |mu|^2 between means, d sigma^2 within.
    graph = csbm(n=4000, a=4, b=4, mu=2.0, d=16, sigma=1.5, split="100/0/0")
    expected = 2 * 2.0**2 / (16 * 1.5**2)
    found = measured(graph)
    assert found.own.signal_to_noise == pytest.approx(expected, rel=0.1)
    assert found.nodes == 4000


def test_features_without_signal_have_hardly_any_reliable_coordinate() -> None:
    draw = np.random.default_rng(0)
    labels = draw.integers(4, size=300)
    found = separability(draw.standard_normal((300, 200)), labels)
    assert found.signal_to_noise == pytest.approx(0.0, abs=0.005)
    assert found.reliable_share is not None
    assert found.reliable_share <= 0.01


def test_coordinates_that_carry_the_signal_are_counted() -> None:
    draw = np.random.default_rng(0)
    labels = draw.integers(3, size=300)
    x = draw.standard_normal((300, 100))
    x[:, :10] += 2.0 * labels[:, None]
    found = separability(x, labels)
    assert found.reliable_share == pytest.approx(0.1, abs=0.02)
    assert found.top_tenth_share == pytest.approx(1.0, abs=0.03)


def test_constant_features_and_single_classes_are_unknown_not_numbers() -> None:
    draw = np.random.default_rng(0)
    labels = np.arange(20) % 2
    # What rounding leaves of constant features is not measured.
    rounded = 1.0 + 1e-16 * draw.integers(-3, 4, (20, 3))
    unknown = Separability(None, None, None)
    assert separability(np.ones((20, 3)), labels) == unknown
    assert separability(rounded, labels) == unknown
    assert separability(draw.random((20, 3)), np.zeros(20, int)) == unknown


def test_a_coordinate_that_separates_the_classes_perfectly_is_reliable() -> None:
    draw = np.random.default_rng(0)
    labels = draw.integers(2, size=60)
    x = draw.standard_normal((60, 10))
    x[:, 0] = labels
    assert separability(x, labels).reliable_share == pytest.approx(0.1)
    sure = separability(x[:, :1], labels)
    assert (sure.signal_to_noise, sure.reliable_share) == (None, 1.0)


def test_averaging_over_like_neighbours_raises_the_signal() -> None:
    found = measured(csbm(n=1000, a=12, b=1, mu=1.0, d=16, sigma=1.0))
    own, means = found.own.signal_to_noise, found.neighbours.signal_to_noise
    assert own is not None
    assert means is not None
    assert means > 2 * own


def test_means_are_those_over_a_node_and_the_sources_of_its_edges() -> None:
    x = torch.tensor([[1.0], [2.0], [6.0], [8.0]])
    edges = np.array([[0, 1, 2, 3], [1, 2, 1, 2]])
    for layout in (True, False):
        means = feature_signal._neighbour_means(
            as_layout(x, layout), edges, np.array([2, 0, 1])
        )
        assert means.flatten() == pytest.approx([16 / 3, 1.0, 3.0])


def test_sparse_and_dense_features_measure_alike() -> None:
    graph = csbm(n=200, d=12, sigma=0.5)
    x = torch.where(graph.data.x > 0.6, graph.data.x, 0.0)
    found = []
    for sparse in (True, False):
        data = graph.data.clone()
        data.x = as_layout(x, sparse)
        found.append(measured(replace(graph, data=data)))
    for side in ("own", "neighbours"):
        ours, theirs = (vars(getattr(one, side)) for one in found)
        assert ours == pytest.approx(theirs, rel=1e-4)


def test_test_labels_play_no_part() -> None:
    graph = csbm(n=200, d=12)
    data = graph.data.clone()
    data.y = torch.where(data.train_mask, data.y, 0)
    assert measured(replace(graph, data=data)) == measured(graph)


def test_of_many_values_some_nodes_are_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = csbm(n=2000, d=12, split="100/0/0")
    whole = measured(graph).own.signal_to_noise
    monkeypatch.setattr(feature_signal, "_MOST_VALUES", 12 * 1000)
    part = measured(graph)
    assert part.nodes == 1000
    assert part.own.signal_to_noise == pytest.approx(whole, rel=0.2)


def test_a_check_lists_the_measures_of_columns_as_they_are_scaled(
    tmp_path: Path,
) -> None:
    folder = write_companies(tmp_path / "companies")
    scaled, given = (
        {f.subject: f.value for f in check_graph(folder, scale=scale)}
        for scale in (True, False)
    )
    name = "signal to noise of features"
    assert scaled[name] != given[name]
    # A test of each column does not depend on its unit.
    differ = "share of features that differ by class"
    assert scaled[differ] == given[differ]
    found = {f.subject: f for f in check_graph(write_graph(tmp_path / "graph.npz"))}
    assert found["mean degree"].value > 0
    assert "training nodes" in found[name].action
