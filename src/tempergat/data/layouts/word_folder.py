"""A published layout of folders: `edges.csv`, `features.json` and `target.csv`.

Graphs of the MUSAE collection come like this. `target.csv` is the table of nodes; its
columns are found by the names they were published with, or as the options say.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from tempergat.base import UserError, explain_unreadable, first_line, shown
from tempergat.data.features import csr_tensor
from tempergat.data.formats.errors import GraphError
from tempergat.data.tables.files import find_table, iter_tables
from tempergat.data.tables.folder import read_tables
from tempergat.data.user.reading import Reading, UserGraph

_FEATURES = "features.json"
# Names under which the id and the label of nodes were published. In the table with
# `new_id`, `id` is a number that edges do not use.
_IDS = ("new_id", "id")
_LABELS = ("page_type", "mature")
# Numbers of words above this are not places in a matrix.
_MOST_WORDS = 1 << 31


def is_word_folder(folder: Path) -> bool:
    """Whether a folder has this layout."""
    with explain_unreadable(folder):
        has_words = (folder / _FEATURES).is_file()
    return has_words and find_table(folder, "target") is not None


def read_word_folder(folder: Path, reading: Reading) -> UserGraph:
    """Reads a folder of this layout.

    Raises:
        UserError: A file is missing, or contradicts another.
    """
    if reading.options.features is not None or reading.options.one_hot:
        raise UserError(
            f"the features of {folder} come from {_FEATURES}; leave out --features and "
            "--one-hot"
        )
    target, edges = find_table(folder, "target"), find_table(folder, "edges")
    if target is None or edges is None:
        raise UserError(
            f"{folder} has {_FEATURES}, but no edges.csv or target.csv; add it"
        )
    return read_word_files(target, edges, folder / _FEATURES, reading)


def read_word_files(
    target: Path, edges: Path, words: Path, reading: Reading, num_words: int = 0
) -> UserGraph:
    """Reads the three files of this layout, whatever they are called.

    Args:
        target: The table of nodes; a split is looked for beside it.
        edges: The table of edges.
        words: The words of every node.
        reading: Which columns of `target` are the id and the label.
        num_words: How many words there are at least.

    Raises:
        UserError: A file contradicts another.
    """
    names, options = next(iter_tables(target)).columns, reading.options
    reading = replace(reading, collect=False).with_options(
        id=options.id or next((name for name in _IDS if name in names), None),
        label=options.label or next((n for n in _LABELS if n in names), None),
        features=(),
    )
    graph = read_tables(target.parent, target, edges, reading)
    ids = graph.node_ids or map(str, range(int(graph.data.num_nodes)))
    rows = {name: row for row, name in enumerate(ids)}
    graph.data.x = _read_word_lists(words, rows, num_words)
    unread = [name for name in graph.how_read.not_read if name != words.name]
    return replace(graph, how_read=replace(graph.how_read, not_read=tuple(unread)))


def _read_word_lists(
    path: Path, positions: Mapping[str, int], num_words: int
) -> Tensor:
    """Reads features that are 1 for every word in a node's list and 0 otherwise.

    Args:
        path: The file: an object with a list of whole numbers for every node.
        positions: The row of every node, by its id.
        num_words: How many words there are at least.

    Returns:
        A sparse matrix with a row for every node. A word that is listed twice counts
        once.

    Raises:
        UserError: The file is not such an object, or its nodes are others.
    """
    lists = _parse(path)
    unknown = next((node for node in lists if node not in positions), None)
    if unknown is not None:
        raise GraphError(
            path,
            f"lists words of the node {unknown!r}, which is not among the "
            f"{len(positions)} nodes of the other tables",
            "add it there or drop it here",
        )
    missing = next((node for node in positions if node not in lists), None)
    if missing is not None:
        problem = f"has no list for the node {missing!r}"
        raise GraphError(path, problem, "give it a list of words, which may be empty")
    are_dense = _are_dense(list(lists.values()))
    words = [
        np.flatnonzero(lists[node]) if are_dense else _words(path, node, lists[node])
        for node in positions
    ]
    if are_dense:
        num_words = max(num_words, len(next(iter(lists.values()))))
    indptr = np.cumsum([0, *(len(row) for row in words)])
    indices = np.concatenate([np.empty(0, dtype=np.int64), *words])
    columns = max(num_words, int(indices.max()) + 1 if len(indices) else 0)
    return csr_tensor(indptr, indices, np.ones(len(indices), np.float32), columns)


def _parse(path: Path) -> dict[str, Any]:
    try:
        with explain_unreadable(path):
            content = path.read_bytes()
        lists = json.loads(content, object_pairs_hook=_without_repetition)
    except (ValueError, RecursionError) as error:
        problem = f"is not JSON with one list for each node ({first_line(error)})"
        raise GraphError(path, problem, "save it again") from error
    if not isinstance(lists, dict):
        raise GraphError(
            path,
            f"holds a {type(lists).__name__}",
            "make it an object with one list of words for each node",
        )
    return lists


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    lists = dict(pairs)
    if len(lists) != len(pairs):
        (repeated, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"it lists the node {repeated!r} twice")
    return lists


def _are_dense(lists: list[Any]) -> bool:
    """Whether the lists are vectors of 0 and 1, all of one length.

    A list of words names each once, so the words 0 and 1 make no list of three.
    """
    lengths = {len(each) if isinstance(each, list) else 0 for each in lists}
    return (
        len(lengths) == 1
        and min(lengths) > 2
        and all(type(v) is int and v in (0, 1) for each in lists for v in each)
    )


def _words(path: Path, node: str, words: Any) -> np.ndarray:
    is_list = isinstance(words, list) and all(
        type(word) is int and 0 <= word < _MOST_WORDS for word in words
    )
    if not is_list:
        problem = f"the words of node {node!r} are {shown(words)}"
        raise GraphError(
            f"{path}:", problem, "make them a list of whole numbers from 0"
        )
    return np.unique(np.array(words, dtype=np.int64))
