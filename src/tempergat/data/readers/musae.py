"""Graphs of the MUSAE collection: edges, lists of words and a table of nodes."""

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
from torch_geometric.data import Data

from tempergat.base import first_line
from tempergat.data.formats.damaged import DamagedFile
from tempergat.data.formats.graphs import make_graph, symmetrize
from tempergat.data.formats.numpy_files import require_nodes
from tempergat.data.layouts.word_lists import read_word_lists

# All languages share the words.
_TWITCH_WORDS = 3_170
_PAGE_TYPES = ("company", "government", "politician", "tvshow")
_MATURE = ("False", "True")


def read_facebook(paths: dict[str, Path]) -> Data:
    """Reads the graph of Facebook pages; classes are the kinds of page."""
    return _read(paths, "id", "page_type", _PAGE_TYPES.index)


def read_github(paths: dict[str, Path]) -> Data:
    """Reads the graph of developers; class 1 is machine learning."""
    return _read(paths, "id", "ml_target", int)


def read_twitch(paths: dict[str, Path], folder: str) -> Data:
    """Reads the graph of the streamers of one language; class 1 is mature content.

    Args:
        paths: The files of all languages, or the three files of this one.
        folder: The folder of the language in the archive.
    """
    of_language = {n: p for n, p in paths.items() if n.startswith(f"{folder}/")}
    chosen = of_language or paths
    return _read(chosen, "new_id", "mature", _MATURE.index, _TWITCH_WORDS)


def _read(
    paths: dict[str, Path],
    id_column: str,
    label_column: str,
    class_of: Callable[[str], int],
    num_words: int = 0,
) -> Data:
    """Reads a graph, edges followed both ways. Features are 1 for every word listed.

    Args:
        paths: The edges, the words and the table of nodes.
        id_column: The column that edges and words refer to.
        label_column: The column of the label.
        class_of: Returns the class of a label.
        num_words: How many words there are at least.
    """
    edges, words, table = (
        next(path for name, path in paths.items() if name.endswith(end))
        for end in ("edges.csv", ".json", "target.csv")
    )
    labels = _labels(table, id_column, label_column, class_of)
    num_nodes = len(labels)
    ends = _ends(edges)
    require_nodes(edges, ends, num_nodes)
    positions = {str(node): node for node in range(num_nodes)}
    graph = make_graph(num_nodes, y=labels, edge_index=symmetrize(ends, num_nodes))
    graph.x = read_word_lists(words, positions, num_words)
    return graph


def _labels(
    path: Path, id_column: str, label_column: str, class_of: Callable[[str], int]
) -> np.ndarray:
    with open(path, encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    try:
        nodes = np.array([int(row[id_column]) for row in rows], dtype=np.int64)
        classes = [class_of(row[label_column]) for row in rows]
    except (ValueError, TypeError, KeyError) as error:
        raise DamagedFile(
            path,
            f"does not hold {id_column} and {label_column} of every node "
            f"({first_line(error)})",
        ) from error
    if not np.array_equal(np.sort(nodes), np.arange(len(nodes))):
        raise DamagedFile(path, f"does not number its {len(nodes)} nodes from 0")
    labels = np.empty(len(nodes), dtype=np.int64)
    labels[nodes] = classes
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
