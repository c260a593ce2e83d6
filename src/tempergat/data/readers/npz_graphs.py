"""Published graphs in .npz and .npy files."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from torch_geometric.data import Data, HeteroData

from tempergat.data.dataset import MASKS
from tempergat.data.features import as_tensor, to_scipy
from tempergat.data.formats.errors import DamagedFile
from tempergat.data.formats.graphs import deduplicate, make_graph, narrow, symmetrize
from tempergat.data.formats.number_tables import (
    node_mask,
    read_edges,
    read_numbers,
    require_nodes,
)
from tempergat.data.formats.numpy_files import (
    class_numbers,
    load_array,
    load_arrays,
    load_csr,
    require_shape,
)
from tempergat.data.layouts.npz import read_npz
from tempergat.data.user.reading import Reading, UserGraph
from tempergat.data.user.splits import drop_unused_classes
from tempergat.data.user.validate import check_edges

_NUM_SPLITS = 10
_SPLITS = dict(zip(MASKS, ("train_idx", "val_idx", "test_idx"), strict=True))


def read_heterophilous(paths: dict[str, Path]) -> Data:
    """Reads a graph of the heterophilous-graphs repository. It has ten splits.

    Edges are followed both ways. A class whose nodes are in no split is left out: its
    nodes have no label.
    """
    (path,) = paths.values()
    data = _read_npz(path, drop_loops=False)
    masks = {mask: data[mask] for mask in MASKS}
    wanted = {mask: (len(data.y), _NUM_SPLITS) for mask in MASKS}
    for name, shape in {**wanted, "x": (len(data.y), *data.x.shape[1:])}.items():
        require_shape(path, name, tuple(data[name].shape), shape)
    drop_unused_classes(UserGraph(data), masks, Reading(str(path)))
    data.x = data.x.float()
    return data


def read_csr_parts(paths: dict[str, Path], binary: bool = True) -> Data:
    """Reads parts of sparse matrices, as gnn-benchmark publishes them.

    Edges are followed both ways, and there are no self-loops.

    Args:
        paths: The one file.
        binary: Whether features become 0 or 1, as PyG's readers of these files have it.
    """
    (path,) = paths.values()
    data = _read_npz(path, drop_loops=True)
    if binary:
        x = to_scipy(data.x)
        x.data = (x.data > 0).astype(np.float32)
        x.eliminate_zeros()
        data.x = as_tensor(x)
    return data


def _read_npz(path: Path, drop_loops: bool) -> Data:
    """A graph in a layout that users may give too, with edges followed both ways."""
    data = read_npz(path, Reading(str(path))).data
    data.y = as_tensor(class_numbers(path, data.y.numpy()))
    ((_, _, (count, _)),) = check_edges(str(path), data)
    edges = symmetrize(data.edge_index.numpy(), count, drop_loops)
    data.edge_index = as_tensor(edges)
    return data


def read_attributed(paths: dict[str, Path]) -> Data:
    """Reads a graph whose classes are numbered from 1.

    Args:
        paths: `attrs.npz`, `edgelist.txt` and `labels.txt`, as PyG's
            `AttributedGraphDataset` reads them, or one file of the parts of sparse
            matrices.
    """
    if len(paths) == 1:
        graph = read_csr_parts(paths, binary=False)
        graph.y -= 1
        return graph
    path = paths["attrs.npz"]
    x = load_csr(path)
    rows = x.shape[0]
    labels = read_numbers(paths["labels.txt"], np.int64, 2)
    numbered = np.array_equal(np.sort(labels[:, 0]), np.arange(rows))
    if not numbered:
        raise DamagedFile(
            paths["labels.txt"],
            f"does not give each of the {rows} nodes of {path.name} one label",
            both=True,
        )
    ends = read_edges(paths["edgelist.txt"], rows)
    classes = np.empty(rows, dtype=np.int64)
    classes[labels[:, 0]] = labels[:, 1] - 1
    edge_index = deduplicate(ends, rows, drop_loops=True)
    return make_graph(rows, x=x, y=classes, edge_index=edge_index)


def read_reddit(paths: dict[str, Path]) -> Data:
    """Reads Reddit. The node types 1, 2 and 3 are training, validation and test."""
    path = paths["reddit_graph.npz"]
    edges = load_arrays(path, "row", "col", "shape")
    num_nodes = int(edges["shape"][0])
    ends = (edges["row"], edges["col"])
    for side in ends:
        require_nodes(path, side, num_nodes)
    edge_index = deduplicate(ends, num_nodes)
    # The edges as read take most of the memory: free them before reading features.
    del edges, ends, side
    path = paths["reddit_data.npz"]
    nodes = load_arrays(path, "feature", "label", "node_types")
    for name, values in nodes.items():
        if len(values) != num_nodes:
            problem = f"has {len(values)} rows of {name} for {num_nodes} nodes"
            raise DamagedFile(path, problem, both=True)
    types = nodes["node_types"]
    unknown = np.flatnonzero(~np.isin(types, range(1, len(MASKS) + 1)))
    if len(unknown):
        row = int(unknown[0])
        problem = f"has type {types[row]}; types are 1, 2 and 3 (training to test)"
        raise DamagedFile(f"{path}, row {row + 1} of node_types", problem)
    return make_graph(
        num_nodes,
        edge_index=edge_index,
        x=nodes["feature"].astype(np.float32, copy=False),
        y=class_numbers(path, nodes["label"]),
        **{mask: types == at for at, mask in enumerate(MASKS, start=1)},
    )


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
    path = paths["train_val_test_idx.npz"]
    splits = load_arrays(path, *_SPLITS.values())
    for mask, name in _SPLITS.items():
        target[mask] = as_tensor(node_mask(path, splits[name], len(labels)))
    adjacency = load_csr(paths["adjM.npz"])
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
        x = as_tensor(load_csr(path))
    else:
        x = as_tensor(load_array(path).astype(np.float32))
    if len(x) != data[kind].num_nodes:
        raise DamagedFile(
            path, f"has {len(x)} rows for {data[kind].num_nodes} nodes of type {kind}"
        )
    data[kind].x = x
