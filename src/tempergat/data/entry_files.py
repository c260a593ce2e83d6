"""Reads the graph of a dataset from its raw files, or from its processed form."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from tempergat.base import UserError, explain_full_disk, first_line
from tempergat.data.catalog.entry import Entry
from tempergat.data.fetch.download import Progress
from tempergat.data.fetch.locate import lock_data, obtain
from tempergat.data.formats.damaged import DamagedFile
from tempergat.data.formats.graph_checks import check_arrays
from tempergat.data.formats.raw_graph import Graph
from tempergat.data.processed import (
    is_verified,
    note_verified,
    open_processed,
    write_processed,
)


def read_entry(
    entry: Entry, root: Path, progress: Progress | None, options: dict[str, Any]
) -> tuple[Graph, str]:
    """Reads the arrays of a dataset, from its processed form where there is one.

    Args:
        entry: The dataset.
        root: The data root.
        progress: Called with file name, bytes done and bytes in all while downloading.
        options: The dataset's own options.

    Returns:
        The arrays, and where they came from.

    Raises:
        UserError: The files are missing or damaged.
    """
    if not entry.keep_processed:
        return _read_raw(entry, root, progress, options)
    chosen = [f"-{name}" for name, value in sorted(options.items()) if value]
    folder = root / entry.name / f"processed{''.join(chosen)}"
    source = f"processed in {folder}"
    graph = _open_checked(entry, folder)
    if graph is not None:
        return graph, source
    with lock_data(root / entry.name / ".processed.lock"):
        # Another process may have written it while this one waited.
        graph = _open_checked(entry, folder)
        if graph is None:
            graph = _rebuild(entry, root, folder, progress, options)
    if graph is None:
        raise UserError(
            f"{folder} cannot be read back; check the disk, or move the data root with "
            "TEMPERGAT_DATA"
        )
    return graph, source


def _rebuild(
    entry: Entry,
    root: Path,
    folder: Path,
    progress: Progress | None,
    options: dict[str, Any],
) -> Graph | None:
    """Processes the raw files again; returns what can then be read back."""
    try:
        graph, _ = _read_raw(entry, root, progress, options)
    except UserError as error:
        if not folder.exists():
            raise
        raise UserError(
            f"{folder} is damaged, and the raw files to build it from are missing: "
            f"{error}"
        ) from error
    with explain_full_disk(folder):
        write_processed(folder, graph)
    return _open_checked(entry, folder)


def _open_checked(entry: Entry, folder: Path) -> Graph | None:
    """A processed graph, or None where there is none that is whole and fits."""
    known = is_verified(folder)
    graph = open_processed(folder, verify=not known)
    if graph is None or not _has_size_of(entry, graph):
        return None
    if known:
        return graph
    try:
        check_arrays(folder, graph, entry.target, entry.num_classes)
    except UserError:
        return None
    note_verified(folder)
    return graph


def _has_size_of(entry: Entry, graph: Graph) -> bool:
    found = sum(graph.num_nodes.values())
    return abs(found - entry.num_nodes) <= entry.num_nodes // 100


def _read_raw(
    entry: Entry, root: Path, progress: Progress | None, options: dict[str, Any]
) -> tuple[Graph, str]:
    paths = obtain(entry, root, progress)
    if entry.reader is None:
        raise TypeError(f"the entry of {entry.name} has neither reader nor generator")
    first = next(iter(paths.values()))
    where = first if len(paths) == 1 else first.parent
    try:
        graph = entry.reader(paths, **options)
    except (ValueError, TypeError, LookupError, ArithmeticError) as error:
        # Readers check what is likely to be wrong; files can be wrong in other ways.
        raise DamagedFile(
            where, f"does not hold {entry.name} ({first_line(error)})"
        ) from error
    if _has_size_of(entry, graph):
        check_arrays(where, graph, entry.target, entry.num_classes)
        return graph, f"read from {first.parent}"
    if entry.swapped_files:
        other = replace(entry, files=entry.swapped_files, swapped_files=())
        return _read_raw(other, root, progress, options)
    raise UserError(
        f"{first} holds a graph of {sum(graph.num_nodes.values())} nodes, but "
        f"{entry.name} has {entry.num_nodes}; it belongs to another dataset, so fetch "
        "the right one"
    )
