"""Which columns of the edges are used, in every form of a user graph alike."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data.storage import BaseStorage

from tempergat.base import UserError, listed, suggest_one_of
from tempergat.data.user.options import ReadOptions, in_python, option_flag
from tempergat.data.user.splits import is_split_array
from tempergat.data.user.user_graph import UserGraph

_OF_NODES = ("x", "y")


@dataclass(frozen=True)
class EdgeColumns:
    """The columns of the edges that were asked for.

    Attributes:
        features: Edge features, float32 of shape (edges, columns); None without.
        feature_names: What each column of them is.
        weight: Edge weights, float32; None without.
        weight_name: What they are.
        unused: The columns that are not used.
        notes: A sentence about them.
    """

    features: Tensor | None = None
    feature_names: tuple[str, ...] = ()
    weight: Tensor | None = None
    weight_name: str | None = None
    unused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def added_to(self, graph: UserGraph) -> UserGraph:
        """The graph with `edge_attr` and `edge_weight` set where they are used."""
        if self.features is not None:
            graph.data.edge_attr = self.features
        if self.weight is not None:
            graph.data.edge_weight = self.weight
        return replace(
            graph,
            edge_feature_names=self.feature_names,
            edge_weight_name=self.weight_name,
            notes=(*graph.notes, *self.notes),
        ).not_reading(f"{name} of the edges" for name in self.unused)


def choose_edge_columns(
    source: str,
    names: Sequence[str],
    read: Callable[[str], np.ndarray],
    options: ReadOptions,
) -> EdgeColumns:
    """Reads the columns of the edges that the options name.

    Args:
        source: The file, for errors.
        names: The columns there are, besides the two ends.
        read: Returns a column: one value for each edge, or one row of values.
        options: Which of them are used.

    Raises:
        UserError: A column asked for is missing or does not hold finite numbers, or a
            weight is negative.
    """
    features: list[np.ndarray] = []
    feature_names: list[str] = []
    for name in options.edge_features:
        _require_column(source, name, names, "edge_features")
        column = _finite(source, name, read(name))
        features.append(column)
        several = column.shape[1] != 1
        feature_names += [
            f"{name}[{at}]" if several else name for at in range(column.shape[1])
        ]
    weight = None
    if options.edge_weight is not None:
        _require_column(source, options.edge_weight, names, "edge_weight")
        column = _finite(source, options.edge_weight, read(options.edge_weight))
        weight = _one_weight_per_edge(source, options.edge_weight, column)
    used = {*options.edge_features, options.edge_weight}
    unused = [name for name in names if name not in used]
    return EdgeColumns(
        features=torch.from_numpy(np.concatenate(features, axis=1))
        if features
        else None,
        feature_names=tuple(feature_names),
        weight=weight,
        weight_name=options.edge_weight,
        unused=tuple(unused),
        notes=_note(source, unused),
    )


def _note(source: str, unused: Sequence[str]) -> tuple[str, ...]:
    if not unused:
        return ()
    python = in_python("edge_weight", "edge_features")
    if len(unused) == 1:
        name = unused[0]
        return (
            f"{source}: the edge column {name} is not used; to use it, add "
            f"--edge-weight {name} or --edge-features {name} {python}",
        )
    return (
        f"{source}: the edge columns {listed(unused)} are not used; to use some, name "
        f"them with --edge-features or --edge-weight {python}",
    )


def _require_column(source: str, name: str, names: Sequence[str], option: str) -> None:
    if name not in names:
        remedy = suggest_one_of(name, names) if names else "leave the option out"
        raise UserError(
            f"{option_flag(option)} names {name!r}, but the edges of {source} have "
            f"{'no such column' if names else 'no columns'}; {remedy}"
        )


def _finite(source: str, name: str, column: np.ndarray) -> np.ndarray:
    """The column as a matrix of float32."""
    if column.dtype.kind not in "iufb":
        raise UserError(
            f"{source}: {name} of the edges has type {column.dtype}; save it as numbers"
        )
    with np.errstate(over="ignore"):
        values = column.astype(np.float32)
    if values.ndim == 1:
        values = values[:, None]
    wrong = np.argwhere(~np.isfinite(values))
    if len(wrong):
        edge = int(wrong[0][0])
        raise UserError(
            f"{source}: {name} of edge {edge} is {values[tuple(wrong[0])]}, which is "
            "not a finite number; fill it or drop the edge"
        )
    return np.ascontiguousarray(values)


def _one_weight_per_edge(source: str, name: str, column: np.ndarray) -> Tensor:
    if column.shape[1] != 1:
        raise UserError(
            f"{source}: {name} has {column.shape[1]} values per edge, but a weight is "
            f"one; use them as --edge-features {name} {in_python('edge_features')}"
        )
    negative = np.flatnonzero(column[:, 0] < 0)
    if len(negative):
        edge = int(negative[0])
        raise UserError(
            f"{source}: {name} of edge {edge} is {column[edge, 0]:g}, but a weight "
            f"cannot be negative; use it as --edge-features {name} "
            f"{in_python('edge_features')}"
        )
    return torch.from_numpy(column[:, 0].copy())


def edge_attributes(store: BaseStorage) -> list[str]:
    """The attributes of a PyG object that have one row for each edge.

    PyG also counts `neg_edge_index` and other indices of as many columns among the
    edge attributes; they are not about the edges of the graph.
    """
    count = store.edge_index.shape[1]
    # With as many nodes as edges, PyG decides by the name.
    is_unclear = store._key is None and _rows(store.get("x", store.get("y"))) == count
    return [
        name
        for name, value in store.items()
        if name not in _OF_NODES
        and not is_split_array(name)
        and "index" not in name
        and name != "face"
        and _rows(value) == count
        and ("edge" in name or not is_unclear)
    ]


def _rows(value: object) -> int | None:
    if isinstance(value, Tensor):
        return value.shape[0] if value.dim() else None
    return len(value) if isinstance(value, list | tuple) else None
