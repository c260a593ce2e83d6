"""Graphs of the MUSAE collection: edges, lists of words and a table of nodes."""

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from torch_geometric.data import Data

from tempergat.base import first_line
from tempergat.data.formats.damaged import DamagedFile
from tempergat.data.formats.graphs import make_graph, symmetrize
from tempergat.data.formats.numpy_files import require_nodes
from tempergat.data.layouts.word_lists import read_word_lists


def read_musae(
    paths: dict[str, Path],
    id_column: str,
    label_column: str,
    classes: Sequence[str],
    num_words: int = 0,
    folder: str = "",
) -> Data:
    """Reads a graph, edges followed both ways. Features are 1 for every word listed.

    Args:
        paths: The edges, the words and the table of nodes, of one graph or of several.
        id_column: The column that edges and words refer to.
        label_column: The column of the label.
        classes: The label of each class.
        num_words: How many words there are at least.
        folder: The folder of the graph in an archive of several.
    """
    paths = {n: p for n, p in paths.items() if n.startswith(f"{folder}/")} or paths
    edges, words, table = (
        next(path for name, path in paths.items() if name.endswith(end))
        for end in ("edges.csv", ".json", "target.csv")
    )
    labels = _labels(table, id_column, label_column, classes)
    num_nodes = len(labels)
    ends = _ends(edges)
    require_nodes(edges, ends, num_nodes)
    positions = {str(node): node for node in range(num_nodes)}
    graph = make_graph(num_nodes, y=labels, edge_index=symmetrize(ends, num_nodes))
    graph.x = read_word_lists(words, positions, num_words)
    return graph


def _labels(
    path: Path, id_column: str, label_column: str, classes: Sequence[str]
) -> np.ndarray:
    with open(path, encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    try:
        nodes = np.array([int(row[id_column]) for row in rows], dtype=np.int64)
        numbers = [classes.index(row[label_column]) for row in rows]
    except (ValueError, TypeError, KeyError) as error:
        raise DamagedFile(
            path,
            f"does not hold {id_column} and {label_column} of every node "
            f"({first_line(error)})",
        ) from error
    if not np.array_equal(np.sort(nodes), np.arange(len(nodes))):
        raise DamagedFile(path, f"does not number its {len(nodes)} nodes from 0")
    labels = np.empty(len(nodes), dtype=np.int64)
    labels[nodes] = numbers
    return labels


def _ends(path: Path) -> np.ndarray:
    """The source and target of every row below the heading."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()[1:]
        pairs = [line.split(",") for line in lines if line]
        return np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    except ValueError as error:
        raise DamagedFile(
            path, f"does not hold two node numbers in each row ({first_line(error)})"
        ) from error
