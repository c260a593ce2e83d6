"""Loads graphs: datasets by name, user graphs by path."""

import os
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tempergat.base import UserError
from tempergat.data.catalog.entries import Entry, find_entry
from tempergat.data.dataset import MASKS, Dataset, hash_tensors
from tempergat.data.entry_files import read_entry
from tempergat.data.features import as_layout
from tempergat.data.fetch.download import Progress
from tempergat.data.fetch.locate import as_path, data_root
from tempergat.data.layouts.array_folder import is_array_folder
from tempergat.data.scaling import note_on_scales
from tempergat.data.splits import GraphWithSplits
from tempergat.data.user.open_graph import USER_SUFFIXES, open_user_graph
from tempergat.data.user.options import ReadOptions, option_flag


def load(
    name: str | os.PathLike[str],
    root: str | os.PathLike[str] | None = None,
    *,
    split: int | str | None = None,
    split_seed: int | None = None,
    sparse: str | bool = "auto",
    labelled: bool = True,
    progress: Progress | None = None,
    options: ReadOptions | None = None,
    **parameters: Any,
) -> Dataset:
    """Loads a dataset by name, or a user graph by path.

    Features with less than 10 % non-zeros, like Cora's, come as a sparse CSR tensor.
    Our layers take it, but slices like `x[:5]`, `torch.nn.functional.dropout` and PyG's
    `data.subgraph` do not; `sparse=False` or `data.x = to_dense(data.x)` helps.

    Args:
        name: A name from `tempergat data list`, or a path: a `.pt` or `.npz` file, or
            a folder with `nodes.csv` and `edges.csv`. Write `./cora` for a folder
            that is called like a dataset.
        root: Folder for downloads; the user's cache when left out.
        split: The number of an official split, or percentages like `"60/20/20"` for a
            split made here. The official split, or the first of them, when left out.
        split_seed: Seed of a split made here.
        sparse: Whether features are a sparse CSR tensor: True, False, or `"auto"`,
            which is sparse below 10 % non-zeros.
        labelled: Whether a user graph must have labels; False loads it without labels
            and split, for prediction.
        progress: Called with file name, bytes done and bytes in all while downloading.
        options: How a user graph is read; the defaults when left out.
        **parameters: Parameters of one dataset: `directed` for ogbn-arxiv and user
            graphs, `target` for heterogeneous user graphs, and those of `csbm`.

    Raises:
        UserError: There is no such dataset, an option does not fit it, or its files
            are missing or damaged.
    """
    opened = open_graph(
        name,
        root,
        sparse=sparse,
        labelled=labelled,
        use_masks=not isinstance(split, str),
        progress=progress,
        options=options,
        parameters=parameters,
    )
    dataset = opened.choose(split, split_seed)
    warn_of_notes(dataset)
    return dataset


def warn_of_notes(dataset: Dataset) -> None:
    """Gives each note on how a graph was read as a `UserWarning`."""
    for note in dataset.notes:
        warnings.warn(note, UserWarning, stacklevel=3)


def open_graph(
    name: str | os.PathLike[str],
    root: str | os.PathLike[str] | None = None,
    *,
    sparse: str | bool = "auto",
    labelled: bool = True,
    use_masks: bool = True,
    progress: Progress | None = None,
    options: ReadOptions | None = None,
    parameters: dict[str, Any] | None = None,
) -> GraphWithSplits:
    """Reads and hashes a graph, before a split is chosen.

    Args:
        name: As for `load`.
        root: As for `load`.
        sparse: As for `load`.
        labelled: As for `load`.
        use_masks: Whether the masks of a user graph are its splits; otherwise a split
            is made.
        progress: As for `load`.
        options: As for `load`.
        parameters: Parameters of one dataset, as for `load`.

    Raises:
        UserError: As for `load`.
    """
    options, parameters = options or ReadOptions(), parameters or {}
    entry = named_entry(name)
    if entry is None:
        _refuse_unknown("a user graph", parameters, ("directed", "target"))
        graph = open_user_graph(
            as_path(name),
            options=replace(options, **parameters),
            labelled=labelled,
            use_masks=use_masks,
        )
        # Measuring the density of mapped features would read all of them.
        if not is_array_folder(as_path(name)) or sparse != "auto":
            _set_layout(graph.unsplit, sparse)
        return graph
    for option in options.given():
        if option != "directed" or option not in entry.options:
            raise UserError(
                f"{option_flag(option)} is for your own graph, but {entry.name} is a "
                "dataset that is always read the same way; leave it out"
            )
        parameters = {option: options.directed, **parameters}
    _refuse_unknown(entry.name, parameters, entry.options)
    opened = open_entry(entry, data_root(root), sparse, progress, parameters)
    if not os.path.exists(name):
        return opened
    note = f"{name} is the dataset of that name; write ./{name} for the file or folder"
    notes = (*opened.unsplit.notes, note)
    return replace(opened, unsplit=replace(opened.unsplit, notes=notes))


def named_entry(name: str | os.PathLike[str]) -> Entry | None:
    """The entry of a name, or None for a path. A name comes before a path like it."""
    if (
        not isinstance(name, str)
        or os.sep in name
        or Path(name).suffix in USER_SUFFIXES
    ):
        return None
    try:
        return find_entry(name)
    except UserError:
        if os.path.exists(name):
            return None
        raise


def _refuse_unknown(name: str, options: dict[str, Any], known: tuple[str, ...]) -> None:
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise UserError(
            f"{name} takes no option {unknown[0]!r}; it takes "
            + ", ".join(("split", "split_seed", "sparse", *known))
        )


def load_entry(
    entry: Entry,
    root: Path,
    split: int | str | None = None,
    split_seed: int | None = None,
    sparse: str | bool = "auto",
    progress: Progress | None = None,
    options: dict[str, Any] | None = None,
) -> Dataset:
    """Loads a dataset of the catalogue; see `load`."""
    opened = open_entry(entry, root, sparse, progress, options)
    return opened.choose(split, split_seed)


def open_entry(
    entry: Entry,
    root: Path,
    sparse: str | bool = "auto",
    progress: Progress | None = None,
    options: dict[str, Any] | None = None,
) -> GraphWithSplits:
    """Reads and hashes a dataset of the catalogue, before a split is chosen."""
    if not entry.files:
        generated = _generate(entry, options or {})
        _set_layout(generated.unsplit, sparse)
        return generated
    graph, source = read_entry(entry, root, progress, options or {})
    data = graph.data
    unsplit = Dataset(
        name=entry.name,
        data=data,
        target=entry.target,
        num_classes=entry.num_classes,
        metric=entry.metric,
        source=source,
        fingerprint="",
        license=entry.license,
        notes=note_on_scales(entry.name, data),
    )
    hashes = hash_tensors(data, graph.mapped_hashes)
    # Features of processed graphs are dense; measuring that would read all of them.
    if not (entry.keep_processed and sparse == "auto"):
        _set_layout(unsplit, sparse)
    splits = [entry.split] * entry.num_splits
    if entry.num_splits > 1:
        splits = [f"{entry.split}, number {at}" for at in range(entry.num_splits)]

    def masks_of(number: int) -> dict[str, np.ndarray]:
        masks = {name: unsplit.store[name].numpy() for name in MASKS}
        return {n: m if m.ndim == 1 else m[:, number] for n, m in masks.items()}

    return GraphWithSplits(
        unsplit,
        hashes,
        splits,
        masks_of,
        entry.made_split,
        stratified=entry.stratified,
    )


def _generate(entry: Entry, options: dict[str, Any]) -> GraphWithSplits:
    try:
        graph: GraphWithSplits = entry.read(**options)
    except TypeError as error:
        raise UserError(f"{entry.name}: {error}; give its options numbers") from error
    return replace(graph, unsplit=replace(graph.unsplit, name=entry.name))


def _set_layout(dataset: Dataset, sparse: str | bool) -> None:
    """Sets the layout of the features. Hashes are computed before, so that the layout
    does not change the fingerprint.
    """
    for store in dataset.data.node_stores:
        if isinstance(store.get("x"), torch.Tensor):
            store.x = as_layout(store.x, sparse)
