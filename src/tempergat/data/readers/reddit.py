"""Reddit (GraphSAGE), from the arrays DGL publishes."""

from pathlib import Path

import numpy as np
from torch_geometric.data import Data

from tempergat.data.dataset import MASKS
from tempergat.data.formats.damaged import DamagedFile
from tempergat.data.formats.graphs import deduplicate, make_graph
from tempergat.data.formats.numpy_files import class_numbers, load_arrays, require_nodes


def read_reddit(paths: dict[str, Path]) -> Data:
    """Reads Reddit. The node types 1, 2 and 3 are training, validation and test."""
    path = paths["reddit_graph.npz"]
    edges = load_arrays(path, "row", "col", "shape")
    num_nodes = int(edges["shape"][0])
    require_nodes(path, edges["row"], num_nodes)
    require_nodes(path, edges["col"], num_nodes)
    edge_index = deduplicate((edges["row"], edges["col"]), num_nodes)
    # The edges as read take most of the memory: free them before reading features.
    del edges
    path = paths["reddit_data.npz"]
    nodes = load_arrays(path, "feature", "label", "node_types")
    if len(nodes["label"]) != num_nodes or len(nodes["feature"]) != num_nodes:
        raise DamagedFile(
            path,
            f"describes {len(nodes['label'])} nodes, but the graph has {num_nodes}",
            both=True,
        )
    return make_graph(
        num_nodes,
        edge_index=edge_index,
        x=nodes["feature"].astype(np.float32, copy=False),
        y=class_numbers(path, nodes["label"]),
        **{mask: nodes["node_types"] == at for at, mask in enumerate(MASKS, start=1)},
    )
