"""DBLP and IMDB, from the arrays MAGNN published."""

from pathlib import Path

import numpy as np
import scipy.sparse

from tempergat.data.dataset import MASKS
from tempergat.data.formats.damaged import DamagedFile
from tempergat.data.formats.numpy_files import (
    checked_csr,
    class_numbers,
    load_array,
    load_arrays,
    require_shape,
)
from tempergat.data.formats.raw_graph import Graph, narrow, put_sparse

# Node types in the order of their numbers, the classified one first.
DBLP_TYPES = ("author", "paper", "term", "conference")
IMDB_TYPES = ("movie", "director", "actor")
_SPLITS = dict(zip(MASKS, ("train_idx", "val_idx", "test_idx"), strict=True))


def read_dblp(paths: dict[str, Path]) -> Graph:
    """DBLP: authors are classified; conferences have no features."""
    return _read_magnn(paths, DBLP_TYPES)


def read_imdb(paths: dict[str, Path]) -> Graph:
    """IMDB: movies are classified."""
    return _read_magnn(paths, IMDB_TYPES)


def _read_magnn(paths: dict[str, Path], types: tuple[str, ...]) -> Graph:
    """One adjacency matrix over all nodes, cut into one relation per pair of types."""
    numbers = load_array(paths["node_types.npy"])
    counts = np.bincount(numbers, minlength=len(types))
    bounds = np.concatenate([[0], np.cumsum(counts)])
    if len(counts) != len(types) or (np.diff(numbers) < 0).any():
        raise DamagedFile(
            paths["node_types.npy"],
            f"does not list the types {', '.join(types)} in order",
        )
    graph = Graph({}, dict(zip(types, counts.tolist(), strict=True)))
    for number, kind in enumerate(types):
        _add_features(graph, paths, number, kind)
    target = types[0]
    labels = class_numbers(paths["labels.npy"], load_array(paths["labels.npy"]))
    if len(labels) != graph.num_nodes[target]:
        raise DamagedFile(
            paths["labels.npy"],
            f"has {len(labels)} labels for {graph.num_nodes[target]} nodes",
        )
    graph.arrays[f"{target}.y"] = labels
    splits = load_arrays(paths["train_val_test_idx.npz"], *_SPLITS.values())
    for mask, name in _SPLITS.items():
        members = np.isin(np.arange(len(labels)), splits[name])
        graph.arrays[f"{target}.{mask}"] = members
    adjacency = _load_sparse(paths["adjM.npz"])
    wanted = (len(numbers), len(numbers))
    require_shape(paths["adjM.npz"], "the matrix", adjacency.shape, wanted)
    for first, source in enumerate(types):
        rows = adjacency[bounds[first] : bounds[first + 1]]
        for second, end in enumerate(types):
            block = rows[:, bounds[second] : bounds[second + 1]].tocoo()
            if block.nnz:
                edges = narrow(np.stack([block.row, block.col]), len(numbers))
                graph.arrays[f"{source}/to/{end}.edge_index"] = edges
    return graph


def _add_features(graph: Graph, paths: dict[str, Path], number: int, kind: str) -> None:
    sparse, dense = f"features_{number}.npz", f"features_{number}.npy"
    if sparse in paths:
        matrix = _load_sparse(paths[sparse])
        put_sparse(graph, f"{kind}.x", matrix)
        rows = matrix.shape[0]
    elif dense in paths:
        graph.arrays[f"{kind}.x"] = load_array(paths[dense]).astype(np.float32)
        rows = len(graph.arrays[f"{kind}.x"])
    else:
        return
    if rows != graph.num_nodes[kind]:
        path = paths.get(sparse) or paths[dense]
        raise DamagedFile(
            path,
            f"has {rows} rows for {graph.num_nodes[kind]} nodes of type {kind}",
        )


def _load_sparse(path: Path) -> scipy.sparse.csr_array:
    parts = load_arrays(path, "data", "indices", "indptr", "shape")
    rows, columns = (int(size) for size in parts["shape"])
    arrays = (parts["data"], parts["indices"], parts["indptr"])
    return checked_csr(path, *arrays, (rows, columns))
