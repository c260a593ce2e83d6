"""Reddit, actor, tolokers and amazon_photo."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.sparse

from tempergat.base.errors import UserError
from tempergat.data.dataset import MASKS
from tempergat.data.formats.numpy_files import (
    checked_csr,
    load_arrays,
    require_nodes,
    require_shape,
)
from tempergat.data.formats.raw_graph import Graph, deduplicate, put_sparse, symmetrize

# Of actor, and of tolokers.
_NUM_SPLITS = 10


def read_reddit(paths: dict[str, Path]) -> Graph:
    """GraphSAGE's Reddit, as DGL publishes it: node types 1, 2 and 3 are the splits."""
    path = paths["reddit_graph.npz"]
    edges = load_arrays(path, "row", "col", "shape")
    num_nodes = int(edges["shape"][0])
    require_nodes(path, edges["row"], num_nodes)
    require_nodes(path, edges["col"], num_nodes)
    graph = Graph({}, {"": num_nodes})
    ends = (edges["row"], edges["col"])
    graph.arrays[".edge_index"] = deduplicate(ends, num_nodes)
    # The edges as read take most of the memory; let go before the features come.
    del edges, ends
    path = paths["reddit_data.npz"]
    nodes = load_arrays(path, "feature", "label", "node_types")
    if len(nodes["label"]) != num_nodes or len(nodes["feature"]) != num_nodes:
        raise UserError(
            f"{path} describes {len(nodes['label'])} nodes, but the graph has "
            f"{num_nodes}; delete both files, so that they are fetched again"
        )
    graph.arrays[".x"] = nodes["feature"].astype(np.float32, copy=False)
    graph.arrays[".y"] = nodes["label"].astype(np.int64)
    for number, mask in enumerate(MASKS, start=1):
        graph.arrays[f".{mask}"] = nodes["node_types"] == number
    return graph


def read_actor(paths: dict[str, Path]) -> Graph:
    """Actor, from geom-gcn's tables; the ten splits become the rows of the masks."""
    path = paths["out1_node_feature_label.txt"]
    nodes, rows, columns, labels = [], [], [], []
    for number, line in _data_lines(path):
        try:
            node, words, label = line.split("\t")
            found = [int(word) for word in words.split(",")]
            nodes.append(int(node))
            labels.append(int(label))
        except ValueError as error:
            raise UserError(
                f"{path}, row {number} is not a node, its words and its label; delete "
                "the file, so that it is fetched again"
            ) from error
        rows += [nodes[-1]] * len(found)
        columns += found
    num_nodes = len(nodes)
    if sorted(nodes) != list(range(num_nodes)):
        raise UserError(
            f"{path} does not number its {num_nodes} nodes from 0; delete it, so that "
            "it is fetched again"
        )
    graph = Graph({}, {"": num_nodes})
    x = scipy.sparse.csr_array(
        (np.ones(len(rows), np.float32), (rows, columns)),
        shape=(num_nodes, max(columns) + 1),
    )
    put_sparse(graph, ".x", x)
    # A word listed twice still counts once.
    graph.arrays[".x.values"][:] = 1
    graph.arrays[".y"] = np.empty(num_nodes, dtype=np.int64)
    graph.arrays[".y"][nodes] = labels
    graph.arrays[".edge_index"] = _actor_edges(paths["out1_graph_edges.txt"], num_nodes)
    splits: dict[str, list[np.ndarray]] = {mask: [] for mask in MASKS}
    for number in range(_NUM_SPLITS):
        masks = load_arrays(paths[f"film_split_0.6_0.2_{number}.npz"], *MASKS)
        for mask in MASKS:
            splits[mask].append(masks[mask].astype(bool))
    for mask in MASKS:
        graph.arrays[f".{mask}"] = np.stack(splits[mask])
    return graph


def _data_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines after the header, with the number a person would give them."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines[1:], start=2):
        if line.strip():
            yield number, line


def _actor_edges(path: Path, num_nodes: int) -> np.ndarray:
    ends = []
    for number, line in _data_lines(path):
        parts = line.split("\t")
        numbers = [int(part) for part in parts if part.isdigit()]
        if len(parts) != 2 or len(numbers) != 2 or max(numbers) >= num_nodes:
            raise UserError(
                f"{path}, row {number} is not two of {num_nodes} nodes; delete the "
                "file, so that it is fetched again"
            )
        ends.append(numbers)
    return deduplicate(np.array(ends, dtype=np.int64).T, num_nodes)


def read_tolokers(paths: dict[str, Path]) -> Graph:
    """Tolokers, with ten splits; each undirected edge is listed once."""
    (path,) = paths.values()
    names = ("node_features", "node_labels", "edges")
    arrays = load_arrays(path, *names, *(f"{mask}s" for mask in MASKS))
    num_nodes = len(arrays["node_labels"])
    require_nodes(path, arrays["edges"], num_nodes)
    x = arrays["node_features"]
    require_shape(path, "node_features", x.shape, (num_nodes, *x.shape[1:]))
    for mask in MASKS:
        wanted = (_NUM_SPLITS, num_nodes)
        require_shape(path, f"{mask}s", arrays[f"{mask}s"].shape, wanted)
    graph = Graph({}, {"": num_nodes})
    graph.arrays[".x"] = x.astype(np.float32, copy=False)
    graph.arrays[".y"] = arrays["node_labels"].astype(np.int64)
    graph.arrays[".edge_index"] = symmetrize(arrays["edges"].T, num_nodes)
    for mask in MASKS:
        graph.arrays[f".{mask}"] = arrays[f"{mask}s"]
    return graph


def read_amazon(paths: dict[str, Path]) -> Graph:
    """An Amazon co-purchase graph: words as 0 or 1, both directions, no self-loops."""
    (path,) = paths.values()
    parts = ("data", "indices", "indptr", "shape")
    names = [f"{matrix}_{part}" for matrix in ("adj", "attr") for part in parts]
    arrays = load_arrays(path, "labels", *names)
    adjacency = _checked_matrix(path, arrays, "adj").tocoo()
    x = _checked_matrix(path, arrays, "attr")
    labels = arrays["labels"].astype(np.int64)
    x.data = (x.data > 0).astype(np.float32)
    x.eliminate_zeros()
    num_nodes = len(labels)
    require_shape(path, "adj", adjacency.shape, (num_nodes, num_nodes))
    require_shape(path, "attr", x.shape, (num_nodes, x.shape[1]))
    graph = Graph({}, {"": num_nodes})
    put_sparse(graph, ".x", x)
    edges = np.stack([adjacency.row, adjacency.col])
    graph.arrays[".edge_index"] = symmetrize(edges, num_nodes, drop_loops=True)
    graph.arrays[".y"] = labels
    return graph


def _checked_matrix(
    path: Path, arrays: dict[str, np.ndarray], name: str
) -> scipy.sparse.csr_array:
    values, indices, indptr = (
        arrays[f"{name}_{part}"] for part in ("data", "indices", "indptr")
    )
    rows, columns = (int(size) for size in arrays[f"{name}_shape"])
    return checked_csr(path, values, indices, indptr, (rows, columns))
