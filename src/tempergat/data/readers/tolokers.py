"""Tolokers, from the arrays of the heterophilous-graphs repository."""

from pathlib import Path

import numpy as np

from tempergat.data.dataset import MASKS
from tempergat.data.formats.numpy_files import (
    class_numbers,
    load_arrays,
    require_nodes,
    require_shape,
)
from tempergat.data.formats.raw_graph import Graph, symmetrize

_NUM_SPLITS = 10


def read_tolokers(paths: dict[str, Path]) -> Graph:
    """Reads tolokers. Each undirected edge is listed once, and there are ten splits."""
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
    graph.arrays[".y"] = class_numbers(path, arrays["node_labels"])
    graph.arrays[".edge_index"] = symmetrize(arrays["edges"].T, num_nodes)
    for mask in MASKS:
        graph.arrays[f".{mask}"] = arrays[f"{mask}s"]
    return graph
