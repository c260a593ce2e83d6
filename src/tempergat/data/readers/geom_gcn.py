"""Actor and the WebKB graphs, from geom-gcn's tables."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.sparse
from torch_geometric.data import Data

from tempergat.data.dataset import MASKS
from tempergat.data.formats.damaged import DamagedFile
from tempergat.data.formats.graphs import deduplicate, make_graph
from tempergat.data.formats.numpy_files import load_arrays

_NUM_SPLITS = 10


def read_geom_gcn(paths: dict[str, Path], *, word_lists: bool = False) -> Data:
    """Reads a graph. The ten splits become the columns of the masks.

    Args:
        paths: The tables and the splits.
        word_lists: Whether nodes have lists of words, as in actor; otherwise they have
            a 0 or 1 for every word, as in the WebKB graphs.
    """
    path = paths["out1_node_feature_label.txt"]
    nodes, rows, columns, labels = [], [], [], []
    num_words = 0
    for number, line in _data_lines(path):
        try:
            node, words, label = line.split("\t")
            values = [int(word) for word in words.split(",")]
            nodes.append(int(node))
            labels.append(int(label))
        except ValueError as error:
            raise DamagedFile(
                f"{path}, row {number}",
                "does not hold a node, its words and its label",
            ) from error
        found = values if word_lists else np.flatnonzero(values).tolist()
        num_words = max(num_words, max(values) + 1 if word_lists else len(values))
        rows += [nodes[-1]] * len(found)
        columns += found
    num_nodes = len(nodes)
    if sorted(nodes) != list(range(num_nodes)):
        raise DamagedFile(path, f"does not number its {num_nodes} nodes from 0")
    x = scipy.sparse.csr_array(
        (np.ones(len(rows), np.float32), (rows, columns)),
        shape=(num_nodes, num_words),
    )
    # A word listed twice still counts once.
    x.sum_duplicates()
    x.data[:] = 1
    y = np.empty(num_nodes, dtype=np.int64)
    y[nodes] = labels
    splits = [load_arrays(file, *MASKS) for file in _split_files(paths)]
    return make_graph(
        num_nodes,
        x=x,
        y=y,
        edge_index=_edges(paths["out1_graph_edges.txt"], num_nodes),
        **{name: np.stack([s[name] != 0 for s in splits], axis=1) for name in MASKS},
    )


def _split_files(paths: dict[str, Path]) -> list[Path]:
    """The files of the splits in order; their names begin with the graph's."""
    ends = [f"_split_0.6_0.2_{number}.npz" for number in range(_NUM_SPLITS)]
    return [
        next(path for name, path in paths.items() if name.endswith(end)) for end in ends
    ]


def _data_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines after the header with their line numbers; the header is line 1."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines[1:], start=2):
        if line.strip():
            yield number, line


def _edges(path: Path, num_nodes: int) -> np.ndarray:
    ends = []
    for number, line in _data_lines(path):
        parts = line.split("\t")
        numbers = [int(part) for part in parts if part.isdigit()]
        if len(parts) != 2 or len(numbers) != 2 or max(numbers) >= num_nodes:
            raise DamagedFile(
                f"{path}, row {number}",
                f"does not hold two node numbers below {num_nodes}",
            )
        ends.append(numbers)
    return deduplicate(np.array(ends, dtype=np.int64).T, num_nodes)
