"""`GraphClassifier` behaves as scikit-learn's own classifiers do."""

import pickle
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from torch_geometric.data import Data

from tempergat import GraphClassifier
from tempergat.base import UserError
from tempergat.data import Dataset, csbm
from tempergat.training import load_recipe
from tests.support.processes import ProcessStarter
from tests.support.tiny_graph import write_recipe

WORDS = np.array(["ape", "bee", "cow"])


@pytest.fixture
def graph() -> Dataset:
    return csbm(n=90, a=10.0, b=1.0, d=6, mu=3.0, classes=3)


@pytest.fixture
def options(tmp_path: Path) -> Iterator[dict[str, Any]]:
    recipe = load_recipe(write_recipe(tmp_path / "recipe.yaml", learning_rate=0.05))
    return {"recipe": recipe, "device": "cpu", "epochs": 20}


def words_of(graph: Dataset) -> np.ndarray:
    return WORDS[graph.data.y.numpy()]


def test_words_come_back_as_words(graph: Dataset, options: dict[str, Any]) -> None:
    y = words_of(graph)
    nodes = np.arange(60)
    classifier = GraphClassifier(graph, method="gat", **options).fit(nodes, y[:60])
    rest = np.arange(60, 90)
    predicted = classifier.predict(rest)
    assert set(predicted) <= set(WORDS)
    assert list(classifier.classes_) == list(WORDS)
    assert classifier.score(rest, y[60:]) == np.mean(predicted == y[60:]) > 0.6
    shares = classifier.predict_proba(rest)
    assert shares.shape == (30, 3)
    np.testing.assert_allclose(shares.sum(1), 1.0, rtol=1e-5)
    assert list(classifier.classes_[shares.argmax(1)]) == list(predicted)
    assert classifier.model_.class_names == tuple(WORDS)


def test_numbers_come_back_as_they_were(
    graph: Dataset, options: dict[str, Any]
) -> None:
    y = 10 * graph.data.y.numpy() + 5
    classifier = GraphClassifier(graph, "gcn", **options).fit(range(90), y)
    assert set(classifier.predict([3, 1])) <= {5, 15, 25}


def test_nodes_may_be_named_by_their_ids(
    graph: Dataset, options: dict[str, Any]
) -> None:
    named = replace(graph, node_ids=tuple(f"n{node}" for node in range(90)))
    y = words_of(graph)
    by_id = GraphClassifier(named, "gcn", **options).fit(named.node_ids, y)
    by_position = GraphClassifier(graph, "gcn", **options).fit(np.arange(90), y)
    expected = by_position.predict([7, 80, 3])
    assert list(by_id.predict(["n7", "n80", "n3"])) == list(expected)
    assert list(by_id.predict([7, 80, 3])) == list(expected)
    with pytest.raises(UserError, match=r"has no node 'n90'; give ids like 'n0'"):
        by_id.predict(["n90"])
    reversed_ids = replace(graph, node_ids=tuple(str(89 - node) for node in range(90)))
    numbered = GraphClassifier(reversed_ids, "gcn", **options).fit(
        np.arange(90), y[::-1]
    )
    assert list(numbered.predict([82, 9, 86])) == list(expected)


def test_labels_of_other_nodes_are_not_used(
    graph: Dataset, options: dict[str, Any]
) -> None:
    nodes, y = np.arange(50), words_of(graph)[:50]
    expected = GraphClassifier(graph, "gat", **options).fit(nodes, y)
    other = graph.data.clone()
    other.y[50:] = 0
    other.train_mask[:] = True
    bare = Data(x=other.x, edge_index=other.edge_index)
    for data in (other, bare):
        fitted = GraphClassifier(data, "gat", **options).fit(nodes, y)
        np.testing.assert_array_equal(
            fitted.predict_proba(range(90)), expected.predict_proba(range(90))
        )
    held = expected.model_.run
    assert held.scores["best_val_accuracy"].test == held.scores["best_val_accuracy"].val


def test_the_graph_that_was_given_is_not_changed(
    graph: Dataset, options: dict[str, Any]
) -> None:
    before = graph.data.clone()
    GraphClassifier(graph, "gcn", **options).fit(range(30), words_of(graph)[:30])
    for name, value in before.items():
        assert torch.equal(graph.data[name], value), name


def test_it_can_be_cloned_searched_and_pickled(
    graph: Dataset, options: dict[str, Any]
) -> None:
    classifier = GraphClassifier(graph.data, method="gat", **options)
    assert is_classifier(classifier)
    copied = clone(classifier.set_params(hidden=16, seed=3))
    assert copied.get_params()["hidden"] == 16
    assert not hasattr(copied, "model_")
    nodes, y = np.arange(90), words_of(graph)
    grid = {"method": ["gcn", "gat"], "hidden": np.array([4, 8])}
    search = GridSearchCV(classifier, grid, cv=2).fit(nodes, y)
    assert search.best_score_ > 0.6
    assert len(search.cv_results_["params"]) == 4
    best = search.best_estimator_
    assert best.model_.config.hidden_channels == search.best_params_["hidden"]
    again = pickle.loads(pickle.dumps(best))
    assert list(again.predict(nodes)) == list(search.predict(nodes))


def test_scores_of_cross_validation_are_reproducible(
    graph: Dataset, options: dict[str, Any]
) -> None:
    classifier = GraphClassifier(graph, "temp_gated", **options)
    nodes, y = np.arange(90), words_of(graph)
    first, second = (
        cross_val_score(classifier, nodes, y, cv=3, error_score="raise")
        for _ in range(2)
    )
    assert list(first) == list(second)


@pytest.mark.parametrize(
    ("nodes", "y", "changes", "message"),
    [
        ([0, 1, 90], [0, 1, 1], {}, r"has no node 90; give positions from 0 to 89"),
        (["a", "b"], [0, 1], {}, "has no node 'a'; give positions"),
        ([0, 1, 1], [0, 1, 1], {}, "node 1 is given twice"),
        ([0, 1, 2], [0, 1], {}, r"y has the shape \[2\] for 3 nodes"),
        ([[0, 1]], [0, 1], {}, r"the nodes have the shape \[1, 2\]"),
        ([0, 1], [0, 1], {}, "one node in each of the 2 classes"),
        ([0, 1, 2], [1, 1, 1], {}, "a classifier needs at least two classes"),
        (range(9), [0, 1, 2] * 3, {"validation_fraction": 1.5}, "between 0 and 1"),
        (range(9), [0, 1, 2] * 3, {"epochs": 0}, "epochs is 0"),
        (range(9), [0, 1, 2] * 3, {"method": "gatt"}, "did you mean gat"),
    ],
)
def test_a_mistake_is_one_line(
    graph: Dataset,
    options: dict[str, Any],
    nodes: Any,
    y: Any,
    changes: dict[str, Any],
    message: str,
) -> None:
    classifier = GraphClassifier(graph, **{**options, **changes})
    with pytest.raises(UserError, match=message) as refused:
        classifier.fit(nodes, y)
    assert "\n" not in str(refused.value)


def test_continuous_targets_and_unfitted_classifiers_are_refused_as_usual(
    graph: Dataset, options: dict[str, Any]
) -> None:
    classifier = GraphClassifier(graph, **options)
    with pytest.raises(NotFittedError):
        classifier.predict([0])
    with pytest.raises(ValueError, match="continuous"):
        classifier.fit([0, 1, 2], [0.5, 1.5, 0.25])


def test_without_scikit_learn_everything_else_works(python: ProcessStarter) -> None:
    code = (
        "import sys\n"
        "sys.modules['sklearn'] = None\n"
        "from tempergat import *\n"
        "try:\n"
        "    GraphClassifier('cora')\n"
        "except UserError as error:\n"
        "    print(error)\n"
    )
    ended = python.run(code)
    assert ended.stdout == (
        "GraphClassifier needs scikit-learn, which is not installed; install it with "
        "`pip install 'tempergat[sklearn]'`\n"
    ), ended.stderr
