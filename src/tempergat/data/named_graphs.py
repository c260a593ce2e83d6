"""Datasets of the catalogue, read from raw files or from their processed form."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data, HeteroData

from tempergat.base import UserError, explain_full_disk, first_line, joined
from tempergat.data.catalog.entries import Entry
from tempergat.data.dataset import (
    MASKS,
    UNLABELLED,
    Dataset,
    Target,
    hash_tensors,
    node_counts,
)
from tempergat.data.features import note_on_scales, set_layout
from tempergat.data.fetch.download import Progress
from tempergat.data.fetch.locate import is_local, lock_data, obtain
from tempergat.data.formats.errors import DamagedFile, GraphError
from tempergat.data.processed import (
    is_verified,
    note_verified,
    open_processed,
    write_processed,
)
from tempergat.data.splits import GraphWithSplits
from tempergat.data.user.validate import check_edges, check_features, require_finite


def open_entry(
    entry: Entry,
    root: Path,
    sparse: str | bool = "auto",
    progress: Progress | None = None,
    options: dict[str, Any] | None = None,
) -> GraphWithSplits:
    """Reads and hashes a dataset of the catalogue, before a split is chosen."""
    options = options or {}
    if not entry.files:
        try:
            dataset: Dataset = entry.read(**options)
        except TypeError as error:
            problem = f"{entry.name}: {error}"
            raise UserError(f"{problem}; give its options numbers") from error
        opened = GraphWithSplits(
            replace(dataset, name=entry.name), hash_tensors(dataset.data)
        )
        set_layout(dataset.data, sparse)
        return opened
    data, known, source = _read_entry(entry, root, progress, options)
    unsplit = Dataset(
        name=entry.name,
        data=data,
        target=entry.target,
        predicted=Target(entry.num_classes),
        metric=entry.metric,
        source=source,
        fingerprint="",
        license=entry.license,
        notes=(
            *_note_on_counts(entry, data, options),
            *note_on_scales(entry.name, data),
        ),
    )
    hashes = hash_tensors(data, known)
    # Features of processed graphs are dense; measuring that would read all of them.
    if not (entry.keep_processed and sparse == "auto"):
        set_layout(unsplit.data, sparse)
    masks = {name: unsplit.store[name] for name in MASKS if entry.num_splits}
    return GraphWithSplits(
        unsplit, hashes, masks, entry.split, entry.made_split, entry.stratified
    )


def _read_entry(
    entry: Entry, root: Path, progress: Progress | None, options: dict[str, Any]
) -> tuple[Data | HeteroData, dict[str, str], str]:
    """Reads the graph of a dataset, from its processed form where there is one.

    Returns:
        The graph, the hashes of its arrays that are known, and where it came from.
    """
    if not entry.keep_processed:
        data, source = _read_raw(entry, root, progress, options)
        for store in data.edge_stores:
            store.edge_index = store.edge_index.long()
        return data, {}, source
    values = sorted({**entry.arguments, **options}.items())
    chosen = [f"-{v if isinstance(v, str) else name}" for name, v in values if v]
    folder = root / entry.name / f"processed{''.join(chosen)}"
    source = f"processed in {folder}"
    graph = _open_checked(entry, folder, options)
    if graph is not None:
        return *graph, source
    with lock_data(root / entry.name / ".processed.lock"):
        # Another process may have written it while this one waited.
        graph = _open_checked(entry, folder, options)
        if graph is not None:
            return *graph, source
        try:
            data, _ = _read_raw(entry, root, progress, options)
        except UserError as error:
            if not folder.exists():
                raise
            raise UserError(
                f"{folder} is damaged, and the raw files to build it from are missing: "
                f"{error}"
            ) from error
        with explain_full_disk(folder):
            write_processed(folder, data)
        graph = _open_checked(entry, folder, options)
    if graph is None:
        raise UserError(
            f"{folder} cannot be read back; check the disk, or move the data root with "
            "TEMPERGAT_DATA"
        )
    return *graph, source


def _open_checked(
    entry: Entry, folder: Path, options: dict[str, Any]
) -> tuple[Data | HeteroData, dict[str, str]] | None:
    """A processed graph and its hashes; None where there is none that fits."""
    known = is_verified(folder)
    opened = open_processed(folder, verify=not known)
    if opened is None:
        return None
    data, _ = opened
    try:
        if not known:
            check_entry(folder, data, entry)
        _refuse_other(entry, folder, data, options)
    except UserError:
        return None
    if not known:
        note_verified(folder)
    return opened


def _other_counts(
    entry: Entry, data: Data | HeteroData, options: dict[str, Any], percent: int = 0
) -> dict[str, tuple[int, int]]:
    """What the graph and the catalogue count differently.

    Args:
        entry: The dataset.
        data: The graph.
        options: The dataset's own options.
        percent: Counts that are no farther off are left out, as are those that the
            catalogue does not have.

    Returns:
        The count of the graph and that of the catalogue, by what is counted.
    """
    store = data if entry.target is None else data[entry.target]
    is_typed = isinstance(data, HeteroData)
    # A directed graph has each edge once, as the paper counts them.
    num_edges = entry.paper_edges if options.get("directed") else entry.num_edges
    counts = {
        "nodes": (sum(node_counts(data).values()), entry.num_nodes),
        "edges": (data.num_edges, num_edges),
        "node types": (len(data.node_types) if is_typed else 1, entry.node_types),
        "edge types": (len(data.edge_types) if is_typed else 1, entry.edge_types),
        "features": (store.x.shape[1] if "x" in store else 0, entry.num_features),
    }
    if store.get("y") is not None and len(store.y):
        counts["classes"] = (int(store.y.max()) + 1, entry.num_classes)
    parts = ("training", "validation", "test")
    for part, mask, size in zip(parts, MASKS, entry.split_sizes, strict=False):
        if mask in store:
            first = store[mask] if store[mask].dim() == 1 else store[mask][:, 0]
            counts[f"{part} nodes"] = (int(first.sum()), size)
    return {
        name: (seen, expected)
        for name, (seen, expected) in counts.items()
        if expected is not None and abs(seen - expected) > expected * percent // 100
    }


def _refuse_other(
    entry: Entry, path: Path, data: Data | HeteroData, options: dict[str, Any]
) -> None:
    """Refuses a graph of which a count is over 1 % off: it is another dataset's."""
    others = _other_counts(entry, data, options, percent=1)
    if others:
        raise UserError(
            f"{path} holds a graph of {_counted(others, 0)}, but {entry.name} has "
            f"{_counted(others, 1)}; it belongs to another dataset or is damaged, so "
            "put the right one in its place"
        )


def _note_on_counts(
    entry: Entry, data: Data | HeteroData, options: dict[str, Any]
) -> tuple[str, ...]:
    """A note where counts differ a little, as those of another version would."""
    others = _other_counts(entry, data, options)
    if not others:
        return ()
    return (
        f"{entry.name} was read with {_counted(others, 0)}, but {_counted(others, 1)} "
        "were published; its files may be of another version, so compare results with "
        "published ones with care",
    )


def _counted(others: Mapping[str, tuple[int, int]], at: int) -> str:
    """The counts that were seen (0) or expected (1), in words."""
    return joined([f"{counts[at]:,} {name}" for name, counts in others.items()])


def check_entry(where: Path, data: Data | HeteroData, entry: Entry) -> None:
    """Checks that a graph is one, with the classes and the splits of a dataset.

    Args:
        where: The files, for the error.
        data: The graph.
        entry: The dataset.

    Raises:
        GraphError: An edge, a feature, a label or a mask is missing or impossible.
    """
    if isinstance(data, HeteroData) != (entry.target is not None):
        raise DamagedFile(where, "has other node types")
    counts = node_counts(data)
    check_features(str(where), data)
    require_finite(str(where), data)
    check_edges(str(where), data)
    if node_counts(data) != counts:
        raise DamagedFile(where, f"describes {node_counts(data)} of {counts} nodes")
    store = data if entry.target is None else data[entry.target]
    if "y" not in store:
        raise DamagedFile(where, "has no labels")
    shape = tuple(store.y.shape)
    if shape != (store.num_nodes,) or store.y.dtype.is_floating_point:
        raise DamagedFile(f"{where}:", f"y is {store.y.dtype} of shape {shape}")
    labels, most = store.y.numpy(), entry.num_classes - 1
    wrong = np.flatnonzero((labels < UNLABELLED) | (labels > most))
    if len(wrong):
        node = int(wrong[0])
        raise DamagedFile(
            where,
            f"gives node {node} the label {int(labels[node])}, but there are "
            f"{entry.num_classes} classes (0..{most})",
        )
    columns = () if entry.num_splits <= 1 else (entry.num_splits,)
    for name in MASKS if entry.num_splits else ():
        seen = tuple(store[name].shape) if name in store else "missing"
        if seen != (store.num_nodes, *columns):
            raise DamagedFile(f"{where}:", f"the shape of {name} is {seen}")
    for first, second in combinations(MASKS if entry.num_splits else (), 2):
        both = torch.nonzero(store[first] & store[second])
        if len(both):
            problem = f"puts node {int(both[0, 0])} into {first} and {second}"
            raise DamagedFile(where, problem)


def _read_raw(
    entry: Entry, root: Path, progress: Progress | None, options: dict[str, Any]
) -> tuple[Data | HeteroData, str]:
    other = replace(entry, files=entry.swapped_files, swapped_files=())
    alone = replace(entry, swapped_files=())
    if other.files and is_local(other, root) and not is_local(alone, root):
        entry, other = other, replace(other, files=())
    paths = obtain(entry, root, progress)
    first = next(iter(paths.values()))
    where = first if len(paths) == 1 else first.parent
    try:
        data = entry.read(paths, **options)
        others = _other_counts(entry, data, options, percent=1)
        if other.files and "nodes" in others:
            try:
                return _read_raw(other, root, progress, options)
            except UserError as error:
                seen, wanted = _counted(others, 0), _counted(others, 1)
                found = f"{first} holds a graph of {seen} instead of {wanted}"
                raise UserError(f"{found}, and {error}") from error
        check_entry(where, data, entry)
    except DamagedFile:
        raise
    except GraphError as error:
        raise DamagedFile(error.where, error.problem) from error
    except (ValueError, TypeError, LookupError, ArithmeticError) as error:
        # Readers check what is likely to be wrong; files can be wrong in other ways.
        reason = f"no {error}" if isinstance(error, KeyError) else first_line(error)
        raise DamagedFile(where, f"does not hold {entry.name} ({reason})") from error
    _refuse_other(entry, where, data, options)
    return data, f"read from {first.parent}"
