"""Loads graphs in every form a caller may have them in.

A graph is a dataset by name, a user graph by path, a PyG object or a `Dataset`.
"""

import os
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.data import Dataset as GraphDataset

from tempergat.base import UserError, counted
from tempergat.data.catalog.entries import CATALOG, Entry, find_entry
from tempergat.data.dataset import MASKS, Dataset
from tempergat.data.fetch.download import Progress
from tempergat.data.fetch.locate import as_path, data_root
from tempergat.data.named_graphs import open_entry
from tempergat.data.splits import DEFAULT_SPLIT, GraphWithSplits
from tempergat.data.user.open_graph import USER_SUFFIXES, open_user_graph, short_name
from tempergat.data.user.options import ReadOptions, option_flag
from tempergat.data.user.validate import OF_WHOLE_GRAPHS

# Of a list of graphs, to tell whether each has one target.
_GRAPHS_LOOKED_AT = 8
GraphInput: TypeAlias = Dataset | Data | HeteroData | str | os.PathLike[str]


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
            graphs, `features` (`"averaged"` or `"learned"`) for ogbn-mag and mag-year,
            `target` for heterogeneous user graphs, and those of `csbm`.

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
    graph: Data | HeteroData | str | os.PathLike[str],
    root: str | os.PathLike[str] | None = None,
    *,
    sparse: str | bool = "auto",
    labelled: bool = True,
    use_masks: bool = True,
    progress: Progress | None = None,
    options: ReadOptions | None = None,
    parameters: dict[str, Any] | None = None,
) -> GraphWithSplits:
    """Reads and hashes a graph, before a split is chosen; `load` has the arguments.

    With `use_masks`, the masks of a user graph are its splits; otherwise a split is
    made. The features of a PyG object keep their layout.
    """
    options, parameters = options or ReadOptions(), parameters or {}
    if isinstance(graph, Data | HeteroData):
        return open_user_graph(
            graph, options=options, labelled=labelled, use_masks=use_masks
        )
    entry = named_entry(graph)
    if entry is None:
        _refuse_unknown("a user graph", parameters, ("directed", "target"))
        return open_user_graph(
            as_path(graph),
            options=replace(options, **parameters),
            labelled=labelled,
            use_masks=use_masks,
            sparse=sparse,
        )
    for option in options.given():
        if option not in entry.options:
            raise UserError(
                f"{option_flag(option)} is for your own graph, but {entry.name} is a "
                "dataset that is always read the same way; leave it out"
            )
        value = getattr(options, option)
        value = ",".join(value) if isinstance(value, tuple) else value
        parameters = {option: value, **parameters}
    _refuse_unknown(entry.name, parameters, entry.options)
    opened = open_entry(entry, data_root(root), sparse, progress, parameters)
    if not os.path.exists(graph):
        return opened
    note = (
        f"{graph} is the dataset of that name; write ./{graph} for the file or folder"
    )
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


def as_dataset(
    graph: GraphInput,
    *,
    split: int | str | None = None,
    split_seed: int | None = None,
    labelled: bool = True,
    progress: Progress | None = None,
    options: ReadOptions | None = None,
    scale: bool = True,
) -> Dataset:
    """Turns a graph in any form a caller may have it in into a dataset.

    Args:
        graph: A dataset, a PyG `Data` or `HeteroData`, the path of a user graph, or a
            name from `tempergat data list`. A dataset is returned as it is; a PyG
            object is not changed.
        split: The number of a split the graph comes with, or percentages like
            `"60/20/20"` for a split made here.
        split_seed: Seed of a split made here, or what chooses among several splits.
        labelled: Whether a user graph must have labels; False loads it for prediction.
        progress: Called with file name, bytes done and bytes in all while downloading.
        options: How a user graph is read; the defaults when left out.
        scale: Whether columns of tables are scaled for training; False drops the
            `scaling` of the dataset.

    Returns:
        The dataset. One from a path is called by the file's or folder's name.

    Raises:
        UserError: There is no such graph, it cannot be used, or it has a split that
            `split` or `split_seed` cannot change.
    """
    (dataset,) = load_splits(
        graph,
        split=split,
        split_seed=split_seed,
        max_splits=1,
        labelled=labelled,
        progress=progress,
        options=options,
        scale=scale,
    ).values()
    return dataset


def load_splits(
    graph: GraphInput,
    *,
    split: int | str | None = None,
    split_seed: int | None = None,
    max_splits: int | None = None,
    made_splits: int | None = None,
    keep_given_splits: bool = False,
    labelled: bool = True,
    progress: Progress | None = None,
    options: ReadOptions | None = None,
    scale: bool = True,
) -> dict[int, Dataset]:
    """Loads a graph with each of its splits.

    The graph is read and hashed once; the datasets share all tensors but the masks.

    Args:
        graph: A graph that `as_dataset` takes.
        split: The number of a split, or percentages; only this split is returned.
        split_seed: Seed of a split made here, or what chooses the one split returned.
        max_splits: How many splits are wanted at most; all when left out.
        made_splits: How many splits to make, with seeds from 0, for a graph that comes
            with none; `split` may give their percentages.
        keep_given_splits: Whether a graph that comes with splits keeps them where
            `made_splits` is given; otherwise it is refused.
        labelled: Whether a user graph must have labels.
        progress: Called with file name, bytes done and bytes in all while downloading.
        options: How a user graph is read; the defaults when left out.
        scale: Whether columns of tables are scaled for training.

    Returns:
        Datasets by the number of their split; a split made here is number 0.

    Raises:
        UserError: There is no such graph, it cannot be used, or one of several splits
            has no nodes for training, validation or testing.
    """
    if isinstance(graph, Dataset):
        if split is not None or split_seed is not None:
            raise UserError(
                f"split is {split!r} and split_seed is {split_seed!r}, but a Dataset "
                "has its split already; leave both out, or load the graph with them"
            )
        for option in options.given() if options is not None else ():
            raise UserError(
                f"{option_flag(option)} says how a graph is read, but a Dataset has "
                "been read already; leave it out, or load the graph with it"
            )
        if made_splits is not None and not keep_given_splits:
            raise _not_both(made_splits, "a Dataset has its split already")
        return {graph.split_number: graph if scale else replace(graph, scaling={})}
    opened = _open(graph, split, labelled, progress, options, scale)
    if keep_given_splits and opened.masks and split is None:
        made_splits = None
    if made_splits is not None:
        if split_seed is not None:
            raise _not_both(made_splits, f"split_seed is {split_seed}, a single seed")
        if isinstance(split, int):
            raise _not_both(made_splits, f"split is {split}, which is one split")
        count = made_splits
        datasets = opened.make_splits(split, made_splits, max_splits)
    else:
        first = opened.choose(split, split_seed)
        if split_seed is not None and not (first.is_split_made or first.num_splits > 1):
            raise UserError(
                f"split_seed is {split_seed}, but {first.name} comes with one split; "
                f"leave it out, or have a split made with split {DEFAULT_SPLIT}"
            )
        count = first.num_splits
        if split is not None or split_seed is not None:
            count = 1
        elif max_splits is not None:
            count = min(count, max_splits)
        datasets = {first.split_number: first}
        datasets |= {number: opened.choose(number) for number in range(1, count)}
    return _with_overlaps(_with_all_parts(datasets)) if count > 1 else datasets


def refuse_whole_graphs(given: Any) -> None:
    """Refuses graphs of which each has one target: a data set for another task.

    Raises:
        UserError: They are such graphs.
    """
    if not isinstance(given, list | tuple | GraphDataset) or not len(given):
        return
    # A data set may make each graph anew.
    first = [given[number] for number in range(min(len(given), _GRAPHS_LOOKED_AT))]
    # A graph of one node alone may be meant as a graph of nodes.
    several = any(isinstance(one, Data) and one.num_nodes != 1 for one in first)
    if several and all(map(_has_one_target, first)):
        kind = "regression" if first[0].y.is_floating_point() else "classification"
        raise UserError(
            f"{counted(len(given), 'graph')} with one target each: a data set for "
            f"graph {kind}, but here the classes of nodes are told. Use the layers in "
            "a model of your own, and tempergat.GraphLoader for its batches"
        )


def _has_one_target(graph: Any) -> bool:
    """Whether it is a graph with one target for all of its nodes."""
    y = graph.get("y") if isinstance(graph, Data) else None
    return isinstance(y, Tensor) and (y.dim() == 0 or y.size(0) == 1)


def _with_overlaps(datasets: dict[int, Dataset]) -> dict[int, Dataset]:
    """The splits with what they share."""
    stores = {number: one.store for number, one in datasets.items()}
    uses = torch.stack([store.train_mask for store in stores.values()]).sum(0)
    tests = {n: store.test_mask.numpy().tobytes() for n, store in stores.items()}
    times = Counter(tests.values())
    return {
        n: replace(
            one,
            shares=(bool((uses[stores[n].train_mask] > 1).any()), times[tests[n]] > 1),
        )
        for n, one in datasets.items()
    }


def _open(
    graph: Data | HeteroData | str | os.PathLike[str],
    split: int | str | None,
    labelled: bool,
    progress: Progress | None,
    options: ReadOptions | None,
    scale: bool,
) -> GraphWithSplits:
    """Opens a graph that is not a `Dataset`, under the name it has in tables."""
    is_object = isinstance(graph, Data | HeteroData)
    if not is_object and not isinstance(graph, str | os.PathLike):
        how = (
            "give a dataset, a PyG Data or HeteroData, a path or a name (`tempergat "
            "data list`)"
        )
        if type(graph).__module__.startswith("networkx"):
            how = (
                "save it with networkx.write_graphml(graph, path) and give the path, "
                "or give torch_geometric.utils.from_networkx(graph) with x and y"
            )
        elif isinstance(graph, list | tuple):
            how = f"give one graph, or all to tempergat.compare; {OF_WHOLE_GRAPHS}"
        raise UserError(f"the graph is a {type(graph).__name__}; {how}")
    if not is_object and not os.fspath(graph).strip():
        raise UserError(
            f"the graph is {graph!r}; give a name (`tempergat data list`) or the path "
            "of your own graph"
        )
    opened = open_graph(
        graph,
        labelled=labelled,
        use_masks=not isinstance(split, str),
        progress=progress,
        options=options,
    )
    unsplit = opened.unsplit
    if not is_object and unsplit.name not in CATALOG:
        unsplit = replace(unsplit, name=short_name(Path(graph)))
    return replace(opened, unsplit=unsplit if scale else replace(unsplit, scaling={}))


def _not_both(made_splits: int, reason: str) -> UserError:
    return UserError(f"splits is {made_splits}, but {reason}; leave one of them out")


def _with_all_parts(datasets: dict[int, Dataset]) -> dict[int, Dataset]:
    """Refuses empty masks before the first is used, so that no work is lost."""
    for number, dataset in datasets.items():
        empty = [mask for mask in MASKS if not dataset.store[mask].any()]
        if empty:
            raise UserError(
                f"split {number} of {dataset.name} has no nodes in {empty[0]}; fill "
                "it, or choose another split"
            )
    return datasets
