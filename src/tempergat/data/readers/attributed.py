"""Flickr and BlogCatalog with features, from either of two layouts."""

from pathlib import Path

import numpy as np
from torch_geometric.data import Data

from tempergat.data.formats.damaged import DamagedFile
from tempergat.data.formats.graphs import deduplicate, make_graph
from tempergat.data.formats.numpy_files import (
    checked_csr,
    load_arrays,
    require_nodes,
    require_shape,
)
from tempergat.data.readers.csr_parts import read_csr_parts


def read_attributed(paths: dict[str, Path]) -> Data:
    """Reads a graph whose classes are numbered from 1.

    Args:
        paths: `attrs.npz`, `edgelist.txt` and `labels.txt`, as PyG's
            `AttributedGraphDataset` reads them, or one file of the parts of sparse
            matrices.
    """
    if len(paths) == 1:
        graph = read_csr_parts(paths, binary=False)
        graph.y = graph.y - 1
        return graph
    path = paths["attrs.npz"]
    parts = load_arrays(path, "data", "indices", "indptr", "shape")
    require_shape(path, "shape", parts["shape"].shape, (2,))
    rows, columns = (int(size) for size in parts["shape"])
    x = checked_csr(
        path, parts["data"], parts["indices"], parts["indptr"], (rows, columns)
    )
    labels = _numbers(paths["labels.txt"])
    numbered = np.array_equal(np.sort(labels[:, 0]), np.arange(rows))
    if not numbered:
        raise DamagedFile(
            paths["labels.txt"],
            f"does not give each of the {rows} nodes of {path.name} one label",
            both=True,
        )
    ends = _numbers(paths["edgelist.txt"])
    require_nodes(paths["edgelist.txt"], ends, rows)
    classes = np.empty(rows, dtype=np.int64)
    classes[labels[:, 0]] = labels[:, 1] - 1
    edge_index = deduplicate(ends.T, rows, drop_loops=True)
    return make_graph(rows, x=x, y=classes, edge_index=edge_index)


def _numbers(path: Path) -> np.ndarray:
    """The pairs of whole numbers in a text file, one pair in each line."""
    try:
        lines = path.read_text(encoding="utf-8").replace(",", " ").splitlines()
        pairs = np.array([line.split() for line in lines], dtype=np.int64)
    except ValueError as error:
        raise DamagedFile(
            path, f"does not hold two whole numbers in each line ({error})"
        ) from error
    require_shape(path, "the table", pairs.shape, (len(pairs), 2))
    return pairs
