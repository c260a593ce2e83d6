"""Checks the arrays of a dataset, whichever files they were read from."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tempergat.data.dataset import MASKS, UNLABELLED
from tempergat.data.formats.damaged import DamagedFile
from tempergat.data.formats.raw_graph import SPARSE_PARTS, Graph

_BLOCK = 1 << 22


def check_arrays(
    where: Path | str, graph: Graph, target: str | None, num_classes: int
) -> None:
    """Checks that the arrays are a graph with labels.

    Args:
        where: The files, for the error.
        graph: The arrays.
        target: Node type that is classified; None in a homogeneous graph.
        num_classes: How many classes the dataset has.

    Raises:
        UserError: An array is missing, or of a wrong type or shape, or an edge, a label
            or a feature is impossible.
    """
    labels = f"{target or ''}.y"
    if labels not in graph.arrays:
        raise DamagedFile(where, "has no labels")
    count = graph.num_nodes.get(target or "")
    _check_labels(where, graph.arrays[labels], count, num_classes)
    check_structure(where, graph)


def check_structure(where: Path | str, graph: Graph) -> None:
    """Checks that the arrays, labels apart, are a graph; see `check_arrays`."""
    for name, array in graph.arrays.items():
        owner, _, attribute = name.rpartition(".")
        if attribute == "edge_index":
            _check_edges(where, graph, owner, array)
        elif attribute in MASKS:
            _require(
                where,
                f"the shape of {attribute}",
                array.shape[-1:] == (graph.num_nodes.get(owner),),
                array.shape,
            )
        elif attribute == "x":
            count = graph.num_nodes.get(owner)
            is_matrix = array.ndim == 2 and array.shape[0] == count
            _require(where, "the shape of x", is_matrix, array.shape)
            _check_finite(where, array)
    for name in graph.num_columns:
        _check_sparse(where, graph, name)


def _require(where: Path | str, what: str, holds: bool, seen: object) -> None:
    if not holds:
        raise DamagedFile(f"{where}:", f"{what} is {seen}")


def _check_edges(where: Path | str, graph: Graph, owner: str, ends: np.ndarray) -> None:
    kinds = owner.split("/") if owner else ["", "", ""]
    sizes = [graph.num_nodes.get(kind) for kind in (kinds[0], kinds[-1])]
    is_index = ends.ndim == 2 and ends.shape[0] == 2 and ends.dtype.kind in "iu"
    _require(where, "edge_index", is_index, f"{ends.dtype} of shape {ends.shape}")
    for row, size in zip(ends, sizes, strict=True):
        for block in _blocks(row):
            low, high = int(block.min()), int(block.max())
            if size is None or low < 0 or high >= size:
                raise DamagedFile(
                    where, f"names nodes {low} to {high}, but there are {size} nodes"
                )


def _check_labels(
    where: Path | str, labels: np.ndarray, count: int | None, num_classes: int
) -> None:
    is_list = labels.dtype.kind in "iu" and labels.shape == (count,)
    _require(
        where, "the array of labels", is_list, f"{labels.dtype} of shape {labels.shape}"
    )
    wrong = np.flatnonzero((labels < UNLABELLED) | (labels >= num_classes))
    if len(wrong):
        node = int(wrong[0])
        raise DamagedFile(
            where,
            f"gives node {node} the label {int(labels[node])}, but there are "
            f"{num_classes} classes (0..{num_classes - 1})",
        )


def _check_finite(where: Path | str, values: np.ndarray) -> None:
    is_number = values.dtype.kind == "f"
    _require(where, "the type of x", is_number, values.dtype)
    for block in _blocks(values):
        # Models compute in float32, where 1e300 is infinite.
        with np.errstate(over="ignore"):
            is_finite = np.isfinite(block.astype(np.float32, copy=False)).all()
        if not is_finite:
            raise DamagedFile(
                where, "holds features that are not finite numbers of float32"
            )


def _check_sparse(where: Path | str, graph: Graph, name: str) -> None:
    parts = [graph.arrays.get(f"{name}.{part}") for part in SPARSE_PARTS]
    indptr, indices, values = parts
    if indptr is None or indices is None or values is None:
        raise DamagedFile(where, f"lacks a part of the sparse matrix {name}")
    rows = graph.num_nodes.get(name.rpartition(".")[0])
    columns = graph.num_columns[name]
    # The matrix itself is checked where it becomes a tensor, row by row.
    fits = (
        indptr.ndim == indices.ndim == values.ndim == 1
        and rows is not None
        and len(indptr) == rows + 1
        and len(indices) == len(values) == int(indptr[-1])
        and (len(indices) == 0 or int(indices.max()) < columns)
        and bool((np.diff(indptr) >= 0).all())
    )
    _require(where, f"the sparse matrix {name}", fits, "broken")
    _check_finite(where, values)


def _blocks(array: np.ndarray) -> Iterator[np.ndarray]:
    """Some rows at a time."""
    rows = max(1, _BLOCK * len(array) // max(1, array.size))
    for start in range(0, len(array), rows):
        yield array[start : start + rows]
