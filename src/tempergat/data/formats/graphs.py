"""Graphs from arrays: their edges sorted, without repetition, or both ways."""

import numpy as np
import scipy.sparse
from torch_geometric.data import Data, HeteroData

from tempergat.data.features import as_tensor

# Above this many edges, memory-mapped indices stay the int32 they are on disk.
_MAX_WIDENED_EDGES = 10_000_000
_BLOCK = 1 << 22


def are_widened(num_edges: int) -> bool:
    """Whether indices that are mapped into memory become int64.

    Every PyG operator takes int64; of a large graph nothing is copied.
    """
    return num_edges <= _MAX_WIDENED_EDGES


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


def make_graph(num_nodes: int, **arrays: np.ndarray | scipy.sparse.csr_array) -> Data:
    """A graph without node types. The arrays are shared, sparse matrices copied."""
    tensors = {name: as_tensor(array) for name, array in arrays.items()}
    return Data(num_nodes=num_nodes, **tensors)


def add_relation(
    data: HeteroData, kind: tuple[str, str, str], edge_index: np.ndarray
) -> None:
    """Adds edges between two node types, and those of a reverse type `rev_...`.

    Edges within one node type are followed both ways instead.
    """
    source, relation, target = kind
    sizes = (int(data[source].num_nodes), int(data[target].num_nodes))
    if source == target:
        edge_index = symmetrize(edge_index, sizes[0])
    else:
        reverse = transpose(edge_index, *sizes)
        data[target, f"rev_{relation}", source].edge_index = as_tensor(reverse)
    data[kind].edge_index = as_tensor(narrow(edge_index, max(sizes)))
