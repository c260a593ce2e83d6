"""Graphs stored as the parts of sparse matrices, as gnn-benchmark publishes them."""

from pathlib import Path

import numpy as np
import scipy.sparse
from torch_geometric.data import Data

from tempergat.data.formats.graphs import make_graph, symmetrize
from tempergat.data.formats.numpy_files import (
    checked_csr,
    class_numbers,
    load_arrays,
    require_shape,
)


def read_csr_parts(paths: dict[str, Path], binary: bool = True) -> Data:
    """Reads a graph with edges both ways and no self-loops.

    Args:
        paths: The one file.
        binary: Whether features become 0 or 1, as PyG's readers of these files have it.
    """
    (path,) = paths.values()
    parts = ("data", "indices", "indptr", "shape")
    names = [f"{matrix}_{part}" for matrix in ("adj", "attr") for part in parts]
    arrays = load_arrays(path, "labels", *names)
    adjacency = _checked_matrix(path, arrays, "adj").tocoo()
    x = _checked_matrix(path, arrays, "attr")
    labels = class_numbers(path, arrays["labels"])
    if binary:
        x.data = (x.data > 0).astype(np.float32)
        x.eliminate_zeros()
    num_nodes = len(labels)
    require_shape(path, "adj", adjacency.shape, (num_nodes, num_nodes))
    require_shape(path, "attr", x.shape, (num_nodes, x.shape[1]))
    ends = np.stack([adjacency.row, adjacency.col])
    edge_index = symmetrize(ends, num_nodes, drop_loops=True)
    return make_graph(num_nodes, x=x, edge_index=edge_index, y=labels)


def _checked_matrix(
    path: Path, arrays: dict[str, np.ndarray], name: str
) -> scipy.sparse.csr_array:
    values, indices, indptr = (
        arrays[f"{name}_{part}"] for part in ("data", "indices", "indptr")
    )
    shape = arrays[f"{name}_shape"]
    require_shape(path, f"{name}_shape", shape.shape, (2,))
    return checked_csr(path, values, indices, indptr, (int(shape[0]), int(shape[1])))
