"""A scikit-learn classifier for the nodes of one graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import torch

from tempergat.base import UserError
from tempergat.data import (
    MASKS,
    UNLABELLED,
    Dataset,
    GraphInput,
    ReadOptions,
    as_dataset,
    warn_of_notes,
    with_labels,
)
from tempergat.training.runs.user_modules import BuildModule
from tempergat.training.settings.recipes import Recipe, recipe_for
from tempergat.training.single.model import TrainedModel
from tempergat.training.single.training import train

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted
except ImportError:
    # The name can be imported without scikit-learn, but not used.
    BaseEstimator = ClassifierMixin = None

_BASES: Any = (object,) if BaseEstimator is None else (ClassifierMixin, BaseEstimator)
# The parameters that take the place of a recipe's settings.
_SETTINGS = ("epochs", "lr", "hidden", "heads", "layers", "dropout")


class GraphClassifier(*_BASES):  # type: ignore[misc]
    """A scikit-learn classifier for the nodes of one graph.

    The graph is a parameter of the classifier; ``X`` is a list of its nodes. Edges and
    features of all nodes are used in training, but of labels only those given to
    `fit`, never those that the graph itself has. ``fit`` holds out a share of its nodes
    by class to choose the epoch, as `tempergat.train` does with the validation nodes::

        classifier = GraphClassifier("mygraph/", method="temp_gated")
        search = GridSearchCV(classifier, {"hidden": [16, 64]}).fit(node_ids, y)

    Args:
        graph: A PyG ``Data``, a dataset, the path of a graph, or a name from
            `tempergat data list`. It needs no labels.
        method: A key of ``METHODS``, or a callable that takes the numbers of features
            and classes and returns a module to be called as ``module(x, edge_index)``.
        epochs: Number of epochs; None for the recipe's, like the five that follow.
        lr: Learning rate.
        hidden: Total width of a hidden layer, all heads together.
        heads: Attention heads of a hidden layer.
        layers: Number of layers.
        dropout: Dropout rate on features and attention weights.
        metric: The metric that chooses the epoch; None for the recipe's.
        class_weights: ``"balanced"`` to weigh each class by its rarity.
        recipe: A recipe, its name or its file; None for the recipe of the dataset
            or, without one, `default`. It has residuals and batch norm; `plain` has
            neither.
        validation_fraction: Share of the nodes of each class that `fit` holds out.
        seed: Seed of the initial weights, of dropout and of the held-out nodes.
        device: `auto`, `cpu`, `cuda` or `cuda:1`.
        read_options: How a user graph is read.
        scale: Whether the columns of numbers of tables are scaled, as for
            `tempergat.compare`.

    Attributes:
        classes_: The classes in the order of the columns of `predict_proba`.
        model_: The ``TrainedModel``. The test score of its record is that of the
            held-out nodes, because no others have labels.
    """

    def __init__(
        self,
        graph: GraphInput,
        method: str | BuildModule = "temp_gated",
        *,
        epochs: int | None = None,
        lr: float | None = None,
        hidden: int | None = None,
        heads: int | None = None,
        layers: int | None = None,
        dropout: float | None = None,
        metric: str | None = None,
        class_weights: str | None = None,
        recipe: str | Recipe | None = None,
        validation_fraction: float = 0.2,
        seed: int = 0,
        device: str | torch.device = "auto",
        read_options: ReadOptions | None = None,
        scale: bool = True,
    ) -> None:
        if BaseEstimator is None:
            raise UserError(
                "GraphClassifier needs scikit-learn, which is not installed; install "
                "it with `pip install 'tempergat[sklearn]'`"
            )
        self.graph = graph
        self.method = method
        self.epochs = epochs
        self.lr = lr
        self.hidden = hidden
        self.heads = heads
        self.layers = layers
        self.dropout = dropout
        self.metric = metric
        self.class_weights = class_weights
        self.recipe = recipe
        self.validation_fraction = validation_fraction
        self.seed = seed
        self.device = device
        self.read_options = read_options
        self.scale = scale

    def fit(self, X: Any, y: Any) -> Self:
        """Trains on some nodes of the graph.

        Args:
            X: The nodes: their ids where the graph has ids, or their positions from 0.
            y: The class of each, a word or a number.

        Raises:
            UserError: A node is not in the graph or given twice, there are fewer than
                two classes, or too few nodes to hold some out.
        """
        graph = as_dataset(
            self.graph,
            labelled=False,
            options=self.read_options,
            scale=self.scale,
        )
        if not isinstance(self.graph, Dataset):
            warn_of_notes(graph)
        nodes = _positions(graph, X)
        labels = np.asarray(y)
        if labels.shape != nodes.shape:
            raise UserError(
                f"y has the shape {list(labels.shape)} for {len(nodes)} nodes; give "
                "one class per node"
            )
        given, counts = np.unique(nodes, return_counts=True)
        if len(given) < len(nodes):
            position = int(given[counts > 1][0])
            name = position if graph.node_ids is None else graph.node_ids[position]
            raise UserError(f"node {name!r} is given twice; give every node once")
        check_classification_targets(labels)
        self.classes_, numbers = np.unique(labels, return_inverse=True)
        classes = np.full(int(graph.data.num_nodes), UNLABELLED, dtype=np.int64)
        classes[nodes] = numbers
        held_out = _held_out(numbers, self.validation_fraction, self.seed)
        parts = dict.fromkeys(MASKS, nodes[held_out])
        parts["train_mask"] = nodes[~held_out]
        labelled = with_labels(
            graph,
            classes,
            parts,
            tuple(map(str, self.classes_)),
            f"{held_out.sum()} of {len(nodes)} nodes held out",
        )
        _, recipe = recipe_for(self.graph, self.recipe)
        values = {name: _plain(getattr(self, name)) for name in _SETTINGS}
        self.model_ = train(
            labelled,
            self.method,
            seed=int(self.seed),
            recipe=recipe,
            device=self.device,
            progress=False,
            metric=self.metric,
            class_weights=self.class_weights,
            settings={name: v for name, v in values.items() if v is not None},
        )
        self._graph = labelled
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The class of each node.

        Args:
            X: Nodes of the graph, as in `fit`.

        Raises:
            UserError: A node is not in the graph, or the training has failed.
        """
        numbers = self._of_nodes(X, TrainedModel.predict)
        classes: np.ndarray = self.classes_[numbers]
        return classes

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class for each node, [nodes, classes].

        Args:
            X: Nodes of the graph, as in `fit`.

        Raises:
            UserError: A node is not in the graph, or the training has failed.
        """
        return self._of_nodes(X, TrainedModel.predict_proba)

    def _of_nodes(self, X: Any, predict: Callable[..., torch.Tensor]) -> np.ndarray:
        check_is_fitted(self, "model_")
        nodes = _positions(self._graph, X)
        return predict(self.model_, self._graph)[nodes].numpy()


def _plain(value: Any) -> Any:
    """A number of NumPy, as grids have them, as a number of Python."""
    return value.item() if isinstance(value, np.generic) else value


def _positions(graph: Dataset, nodes: Any) -> np.ndarray:
    """The positions of nodes that are given by their ids or positions."""
    given = np.asarray(nodes)
    if given.ndim != 1 or not len(given):
        raise UserError(
            f"the nodes have the shape {list(given.shape)}; give a list of ids or "
            "positions"
        )
    ids = graph.node_ids
    numbered = given.dtype.kind in "iu"
    # Numbers are positions only where they cannot be meant as ids.
    if ids is None or (numbered and not any(name.isdecimal() for name in ids)):
        count = int(graph.data.num_nodes)
        if not numbered or given.min() < 0 or given.max() >= count:
            wrong = (
                given[0] if not numbered else given[(given < 0) | (given >= count)][0]
            )
            raise UserError(
                f"{graph.name} has no node {_plain(wrong)!r}; give positions from 0 to "
                f"{count - 1}"
            )
        return given.astype(np.int64)
    known = {name: position for position, name in enumerate(ids)}
    names = [str(_plain(node)) for node in given]
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        raise UserError(
            f"{graph.name} has no node {unknown!r}; give ids like {ids[0]!r}"
        )
    return np.array([known[name] for name in names], dtype=np.int64)


def _held_out(classes: np.ndarray, fraction: float, seed: int) -> np.ndarray:
    """A mask of nodes for validation: a share of each class, of two or more nodes one.

    Args:
        classes: The class of each node.
        fraction: The share.
        seed: Chooses the nodes.
    """
    if not 0.0 < fraction < 1.0:
        raise UserError(
            f"validation_fraction is {fraction!r}; give a number between 0 and 1"
        )
    rng = np.random.default_rng(seed)
    held_out = np.zeros(len(classes), dtype=bool)
    for number in range(classes.max() + 1):
        members = rng.permutation(np.flatnonzero(classes == number))
        share = round(fraction * len(members))
        held_out[members[: min(max(share, 1), len(members) - 1)]] = True
    if not held_out.any():
        raise UserError(
            f"there is one node in each of the {len(classes)} classes, so none can be "
            "held out to choose the epoch; give more nodes"
        )
    return held_out
