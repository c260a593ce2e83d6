"""Graphs of the heterophilous-graphs repository, from their arrays."""

from pathlib import Path

import numpy as np
from torch_geometric.data import Data

from tempergat.data.dataset import MASKS, UNLABELLED
from tempergat.data.formats.graphs import make_graph, symmetrize
from tempergat.data.formats.numpy_files import (
    class_numbers,
    load_arrays,
    require_nodes,
    require_shape,
)

_NUM_SPLITS = 10


def read_heterophilous(paths: dict[str, Path]) -> Data:
    """Reads a graph. Each undirected edge is listed once, and there are ten splits.

    A class whose nodes are in no split is left out: its nodes have no label.
    """
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
    is_used = np.any([arrays[f"{mask}s"].any(axis=0) for mask in MASKS], axis=0)
    labels = class_numbers(path, arrays["node_labels"])
    return make_graph(
        num_nodes,
        x=x.astype(np.float32, copy=False),
        y=_classes_in_use(labels, is_used),
        edge_index=symmetrize(arrays["edges"].T, num_nodes),
        **{mask: np.ascontiguousarray(arrays[f"{mask}s"].T) for mask in MASKS},
    )


def _classes_in_use(labels: np.ndarray, is_used: np.ndarray) -> np.ndarray:
    """Classes numbered again without those that no node in a split has."""
    found = np.unique(labels[is_used])
    numbers = np.searchsorted(found, labels)
    numbers[~np.isin(labels, found)] = UNLABELLED
    return numbers
