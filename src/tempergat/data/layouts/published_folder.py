"""A published layout of folders: `edges.csv`, `features.json` and `target.csv`.

Graphs of the MUSAE collection come like this. `target.csv` is the table of nodes; its
columns are found by the names they were published with, or as the options say.
"""

from dataclasses import replace
from pathlib import Path

from tempergat.base import UserError, explain_unreadable
from tempergat.data.layouts.word_lists import read_word_lists
from tempergat.data.tables.files import find_table, iter_tables, unread_files
from tempergat.data.tables.folder import join_tables
from tempergat.data.tables.nodes import read_node_table
from tempergat.data.tables.split_tables import split_tables
from tempergat.data.user.options import ReadOptions
from tempergat.data.user.user_graph import UserGraph

_FEATURES = "features.json"
# Names under which the id and the label of nodes were published. In the table with
# `new_id`, `id` is a number that edges do not use.
_IDS = ("new_id", "id")
_LABELS = ("page_type", "mature")


def is_word_folder(folder: Path) -> bool:
    """Whether a folder has this layout."""
    with explain_unreadable(folder):
        has_words = (folder / _FEATURES).is_file()
    return has_words and find_table(folder, "target") is not None


def read_word_folder(folder: Path, options: ReadOptions, labelled: bool) -> UserGraph:
    """Reads a folder of this layout.

    Args:
        folder: The folder.
        options: Which columns of `target.csv` are the id and the label.
        labelled: Whether there must be labels.

    Raises:
        UserError: A file is missing, or contradicts another.
    """
    if options.features is not None or options.one_hot:
        raise UserError(
            f"the features of {folder} come from {_FEATURES}; leave out --features and "
            "--one-hot"
        )
    target, edges = find_table(folder, "target"), find_table(folder, "edges")
    if target is None or edges is None:
        raise UserError(
            f"{folder} has {_FEATURES}, but no edges.csv or target.csv; add it"
        )
    names = list(next(iter(iter_tables(target))).columns)
    options = replace(
        options,
        id=options.id or next((name for name in _IDS if name in names), None),
        label=options.label or next((n for n in _LABELS if n in names), None),
        features=(),
    )
    ends = [(edges, 0), (edges, 1)]
    nodes = read_node_table(target, ends, options, True, labelled)
    split = split_tables(folder, options, labelled)
    graph = join_tables(nodes, edges, iter_tables(edges), split, options, labelled)
    rows = {name: row for row, name in enumerate(nodes.ids)}
    graph.data.x = read_word_lists(folder / _FEATURES, rows)
    read = (target, edges, folder / _FEATURES, *split.values())
    return graph.not_reading(unread_files(folder, read))
