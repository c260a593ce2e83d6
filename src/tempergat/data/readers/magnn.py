"""DBLP and IMDB, from the arrays MAGNN published."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import scipy.sparse
from torch_geometric.data import HeteroData

from tempergat.data.dataset import MASKS
from tempergat.data.features import as_tensor
from tempergat.data.formats.damaged import DamagedFile
from tempergat.data.formats.graphs import narrow
from tempergat.data.formats.numpy_files import (
    checked_csr,
    class_numbers,
    load_array,
    load_arrays,
    require_shape,
)

_SPLITS = dict(zip(MASKS, ("train_idx", "val_idx", "test_idx"), strict=True))


def read_magnn(paths: dict[str, Path], types: Sequence[str]) -> HeteroData:
    """Reads one adjacency matrix, cut into one relation per pair of node types.

    Args:
        paths: The arrays.
        types: Node types in the order of their numbers, the classified one first.
    """
    numbers = load_array(paths["node_types.npy"])
    counts = np.bincount(numbers, minlength=len(types))
    bounds = np.concatenate([[0], np.cumsum(counts)])
    if len(counts) != len(types) or (np.diff(numbers) < 0).any():
        raise DamagedFile(
            paths["node_types.npy"],
            f"does not list the types {', '.join(types)} in order",
        )
    data = HeteroData()
    for number, (kind, count) in enumerate(zip(types, counts.tolist(), strict=True)):
        data[kind].num_nodes = count
        _add_features(data, paths, number, kind)
    target = data[types[0]]
    labels = class_numbers(paths["labels.npy"], load_array(paths["labels.npy"]))
    if len(labels) != target.num_nodes:
        raise DamagedFile(
            paths["labels.npy"],
            f"has {len(labels)} labels for {target.num_nodes} nodes",
        )
    target.y = as_tensor(labels)
    splits = load_arrays(paths["train_val_test_idx.npz"], *_SPLITS.values())
    for mask, name in _SPLITS.items():
        target[mask] = as_tensor(np.isin(np.arange(len(labels)), splits[name]))
    adjacency = _load_sparse(paths["adjM.npz"])
    wanted = (len(numbers), len(numbers))
    require_shape(paths["adjM.npz"], "the matrix", adjacency.shape, wanted)
    for first, source in enumerate(types):
        rows = adjacency[bounds[first] : bounds[first + 1]]
        for second, end in enumerate(types):
            block = rows[:, bounds[second] : bounds[second + 1]].tocoo()
            if block.nnz:
                edges = narrow(np.stack([block.row, block.col]), len(numbers))
                data[source, "to", end].edge_index = as_tensor(edges)
    return data


def _add_features(
    data: HeteroData, paths: dict[str, Path], number: int, kind: str
) -> None:
    sparse, dense = f"features_{number}.npz", f"features_{number}.npy"
    path = paths.get(sparse) or paths.get(dense)
    if path is None:
        return
    if sparse in paths:
        x = as_tensor(_load_sparse(path))
    else:
        x = as_tensor(load_array(path).astype(np.float32))
    if len(x) != data[kind].num_nodes:
        raise DamagedFile(
            path, f"has {len(x)} rows for {data[kind].num_nodes} nodes of type {kind}"
        )
    data[kind].x = x


def _load_sparse(path: Path) -> scipy.sparse.csr_array:
    parts = load_arrays(path, "data", "indices", "indptr", "shape")
    rows, columns = (int(size) for size in parts["shape"])
    arrays = (parts["data"], parts["indices"], parts["indptr"])
    return checked_csr(path, *arrays, (rows, columns))
