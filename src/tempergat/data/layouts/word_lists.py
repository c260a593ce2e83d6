"""Reads `features.json`: for every node, a list of the words it has, as numbers."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from tempergat.base import UserError, explain_unreadable, first_line, shown
from tempergat.data.features import csr_tensor

# Numbers of words above this are not places in a matrix.
_MOST_WORDS = 1 << 31


def read_word_lists(
    path: Path, positions: Mapping[str, int], num_words: int = 0
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
        raise UserError(
            f"{path} lists words of the node {unknown!r}, which is not among the "
            f"{len(positions)} nodes of the other tables; add it there or drop it here"
        )
    missing = next((node for node in positions if node not in lists), None)
    if missing is not None:
        raise UserError(
            f"{path} has no list for the node {missing!r}; give it a list of words, "
            "which may be empty"
        )
    words = [_words(path, node, lists[node]) for node in positions]
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
        raise UserError(
            f"{path} is not JSON with one list for each node ({first_line(error)}); "
            "save it again"
        ) from error
    if not isinstance(lists, dict):
        raise UserError(
            f"{path} holds a {type(lists).__name__}; make it an object with one list "
            "of words for each node"
        )
    return lists


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        (repeated, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"it lists the node {repeated!r} twice")
    return found


def _words(path: Path, node: str, words: Any) -> np.ndarray:
    is_list = isinstance(words, list) and all(
        type(word) is int and 0 <= word < _MOST_WORDS for word in words
    )
    if not is_list:
        raise UserError(
            f"{path}: the words of node {node!r} are {shown(words)}; make them a list "
            "of whole numbers from 0"
        )
    return np.unique(np.array(words, dtype=np.int64))
