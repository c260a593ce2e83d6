"""A graph as plain arrays, as readers return it and processed graphs store it."""

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse
import torch
from torch_geometric.data import Data, HeteroData

from tempergat.data.dataset import MASKS
from tempergat.data.features import csr_tensor

# Names of the three arrays that hold the sparse matrix called `x`.
SPARSE_PARTS = ("indptr", "indices", "values")
# Above this many edges, memory-mapped indices stay the int32 they are on disk.
_MAX_WIDENED_EDGES = 10_000_000
_BLOCK = 1 << 22


@dataclass
class Graph:
    """The arrays of a graph.

    Array names are `"<node type>.<attribute>"` for nodes and
    `"<source>/<relation>/<target>.<attribute>"` for edges; both types are "" in a
    homogeneous graph. A sparse matrix `name` takes the arrays `name.indptr`,
    `name.indices` and `name.values`. A mask has one row per official split.

    Attributes:
        arrays: The arrays by name.
        num_nodes: Number of nodes by type.
        num_columns: Number of columns of each sparse matrix.
        hashes: sha256 of the arrays' content, where it has been computed.
    """

    arrays: dict[str, np.ndarray]
    num_nodes: dict[str, int]
    num_columns: dict[str, int] = field(default_factory=dict)
    hashes: dict[str, str] = field(default_factory=dict)


def put_sparse(graph: Graph, name: str, matrix: scipy.sparse.csr_array) -> None:
    """Adds a sparse matrix to a graph, its column numbers sorted in every row."""
    matrix.sum_duplicates()
    graph.arrays[f"{name}.indptr"] = matrix.indptr
    graph.arrays[f"{name}.indices"] = matrix.indices
    graph.arrays[f"{name}.values"] = matrix.data.astype(np.float32)
    graph.num_columns[name] = matrix.shape[1]


def narrow(index: np.ndarray, bound: int) -> np.ndarray:
    """Node numbers below `bound` as int32, where they fit."""
    fits = bound <= np.iinfo(np.int32).max
    return index.astype(np.int32 if fits else np.int64, copy=False)


def deduplicate(
    edge_index: np.ndarray | tuple[np.ndarray, np.ndarray],
    num_nodes: int,
    drop_loops: bool = False,
) -> np.ndarray:
    """Edges without repetition, sorted by source, then by target."""
    source, target = edge_index
    keys = np.multiply(source, num_nodes, dtype=np.int64)
    keys += target
    if drop_loops:
        keys = keys[source != target]
    return _unpack_keys(_sorted_unique(keys), num_nodes)


def symmetrize(
    edge_index: np.ndarray,
    num_nodes: int,
    drop_loops: bool = False,
    merge: bool = True,
) -> np.ndarray:
    """Both directions of every edge, sorted; without repetition if `merge`."""
    source, target = edge_index
    keys = np.empty(2 * len(source), dtype=np.int64)
    np.multiply(source, num_nodes, out=keys[: len(source)], dtype=np.int64)
    keys[: len(source)] += target
    np.multiply(target, num_nodes, out=keys[len(source) :], dtype=np.int64)
    keys[len(source) :] += source
    if drop_loops:
        keys = keys[keys // num_nodes != keys % num_nodes]
    if merge:
        keys = _sorted_unique(keys)
    else:
        keys.sort()
    return _unpack_keys(keys, num_nodes)


def transpose(edge_index: np.ndarray, sources: int, targets: int) -> np.ndarray:
    """The reversed edges between two node types."""
    return narrow(np.ascontiguousarray(edge_index[::-1]), max(sources, targets))


def _unpack_keys(keys: np.ndarray, num_nodes: int) -> np.ndarray:
    """The two ends in each key, block by block to spare memory."""
    result = np.empty((2, len(keys)), dtype=narrow(keys[:0], num_nodes).dtype)
    for start in range(0, len(keys), _BLOCK):
        block = keys[start : start + _BLOCK]
        source = block // num_nodes
        result[0, start : start + _BLOCK] = source
        # A remainder would cost a second division.
        result[1, start : start + _BLOCK] = block - source * num_nodes
    return result


def _sorted_unique(keys: np.ndarray) -> np.ndarray:
    """Like np.unique, in place: the keys are the largest thing in memory here."""
    keys.sort()
    if len(keys) == 0:
        return keys
    first = np.empty(len(keys), dtype=bool)
    first[0] = True
    np.not_equal(keys[1:], keys[:-1], out=first[1:])
    return keys if first.all() else keys[first]


def to_pyg(graph: Graph, target: str | None) -> Data | HeteroData:
    """Turns arrays, all but the masks, into PyG's tensors.

    Indices become int64, which every PyG operator takes, unless the graph is memory-
    mapped and has over ten million edges: then nothing is copied.

    Args:
        graph: The arrays.
        target: Node type that is classified; None in a homogeneous graph.
    """
    data: Data | HeteroData = Data() if target is None else HeteroData()
    edges = [a for name, a in graph.arrays.items() if name.endswith(".edge_index")]
    widen = sum(array.shape[1] for array in edges) <= _MAX_WIDENED_EDGES
    for node_type, count in graph.num_nodes.items():
        _store(data, node_type).num_nodes = count
    for name, array in graph.arrays.items():
        prefix, attribute = name.rsplit(".", 1)
        if attribute in MASKS or attribute in SPARSE_PARTS:
            continue
        if array.dtype.kind in "iu" and (widen or not isinstance(array, np.memmap)):
            array = array.astype(np.int64, copy=False)
        _store(data, prefix)[attribute] = torch.from_numpy(array)
    for name, columns in graph.num_columns.items():
        prefix, attribute = name.rsplit(".", 1)
        indptr, indices, values = (graph.arrays[f"{name}.{p}"] for p in SPARSE_PARTS)
        matrix = csr_tensor(indptr, indices, values, columns)
        _store(data, prefix)[attribute] = matrix
    return data


def official_masks(
    graph: Graph, target: str | None, number: int
) -> dict[str, np.ndarray]:
    """The masks of one of a graph's official splits."""
    masks = {name: graph.arrays[f"{target or ''}.{name}"] for name in MASKS}
    return {n: m if m.ndim == 1 else m[number] for n, m in masks.items()}


def _store(data: Data | HeteroData, prefix: str) -> Data:
    if isinstance(data, Data):
        return data
    return data[tuple(prefix.split("/"))] if "/" in prefix else data[prefix]
