"""Accepts a graph in every form a caller may have it in."""

import os
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from torch_geometric.data import Data, HeteroData

from tempergat.base import UserError, printable
from tempergat.data.catalog.entries import CATALOG
from tempergat.data.dataset import MASKS, Dataset
from tempergat.data.fetch.download import Progress
from tempergat.data.loading import open_graph
from tempergat.data.splits import DEFAULT_SPLIT, GraphWithSplits
from tempergat.data.user.open_graph import OBJECT_NAME, open_user_graph
from tempergat.data.user.options import ReadOptions, option_flag

GraphInput: TypeAlias = Dataset | Data | HeteroData | str | os.PathLike[str]


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
    if isinstance(graph, Dataset):
        _refuse_split(split, split_seed)
        _refuse_options(options)
        return graph if scale else replace(graph, scaling={})
    opened = _open(
        graph, split, options, labelled=labelled, progress=progress, scale=scale
    )
    dataset = opened.choose(split, split_seed)
    _refuse_idle_seed(dataset, split_seed)
    return dataset


def load_splits(
    graph: GraphInput,
    *,
    split: int | str | None = None,
    split_seed: int | None = None,
    max_splits: int | None = None,
    made_splits: int | None = None,
    keep_given_splits: bool = False,
    progress: Progress | None = None,
    options: ReadOptions | None = None,
    scale: bool = True,
) -> dict[int, Dataset]:
    """Loads a graph with each of its splits.

    The graph is read and hashed once; the datasets share all tensors but the masks.

    Args:
        graph: As for `as_dataset`.
        split: As for `as_dataset`; only this split is returned.
        split_seed: Likewise.
        max_splits: How many splits are wanted at most; all when left out.
        made_splits: How many splits to make, with seeds from 0, for a graph that comes
            with none; `split` may give their percentages.
        keep_given_splits: Whether a graph that comes with splits keeps them where
            `made_splits` is given; otherwise it is refused.
        progress: Called with file name, bytes done and bytes in all while downloading.
        options: As for `as_dataset`.
        scale: As for `as_dataset`.

    Returns:
        Datasets by the number of their split; a split made here is number 0.

    Raises:
        UserError: There is no such graph, it cannot be used, or one of several splits
            has no nodes for training, validation or testing.
    """
    if isinstance(graph, Dataset):
        _refuse_split(split, split_seed)
        _refuse_options(options)
        if made_splits is not None and not keep_given_splits:
            raise _not_both(made_splits, "a Dataset has its split already")
        return {graph.split_number: as_dataset(graph, scale=scale)}
    opened = _open(graph, split, options, progress=progress, scale=scale)
    if keep_given_splits and opened.splits and split is None:
        made_splits = None
    if made_splits is not None:
        if split_seed is not None:
            raise _not_both(made_splits, f"split_seed is {split_seed}, a single seed")
        if isinstance(split, int):
            raise _not_both(made_splits, f"split is {split}, which is one split")
        return _with_all_parts(opened.make_splits(split, made_splits, max_splits))
    first = opened.choose(split, split_seed)
    _refuse_idle_seed(first, split_seed)
    count = first.num_splits if max_splits is None else max_splits
    if split is not None or split_seed is not None:
        count = 1
    datasets = {first.split_number: first}
    for number in range(1, min(first.num_splits, count)):
        datasets[number] = opened.choose(number)
    return _with_all_parts(datasets) if len(datasets) > 1 else datasets


def _open(
    graph: Data | HeteroData | str | os.PathLike[str],
    split: int | str | None,
    options: ReadOptions | None,
    *,
    labelled: bool = True,
    progress: Progress | None,
    scale: bool,
) -> GraphWithSplits:
    opened = _opened(graph, split, options, labelled, progress)
    if scale:
        return opened
    return replace(opened, unsplit=replace(opened.unsplit, scaling={}))


def _opened(
    graph: Data | HeteroData | str | os.PathLike[str],
    split: int | str | None,
    options: ReadOptions | None,
    labelled: bool,
    progress: Progress | None,
) -> GraphWithSplits:
    use_masks = not isinstance(split, str)
    if isinstance(graph, Data | HeteroData):
        return open_user_graph(
            graph, options=options, labelled=labelled, use_masks=use_masks
        )
    if not isinstance(graph, str | os.PathLike):
        raise UserError(
            f"the graph is a {type(graph).__name__}; give a dataset, a PyG Data or "
            "HeteroData, a path or a name (`tempergat data list`)"
        )
    if not os.fspath(graph).strip():
        raise UserError(
            f"the graph is {graph!r}; give a name (`tempergat data list`) or the path "
            "of your own graph"
        )
    opened = open_graph(
        graph,
        labelled=labelled,
        use_masks=use_masks,
        progress=progress,
        options=options,
    )
    if opened.unsplit.name in CATALOG:
        return opened
    # The name of the file or folder is short enough for tables. Bytes in it that are
    # not text, and control characters, are replaced: tables, pictures and terminals
    # cannot show them.
    name = os.fsencode(_short_name(Path(graph).resolve())).decode(errors="replace")
    return replace(opened, unsplit=replace(opened.unsplit, name=printable(name)))


def _short_name(path: Path) -> str:
    """The name of a file without its suffix, or of a folder as it is."""
    if path.is_dir():
        return path.name or OBJECT_NAME
    unzipped = path.with_suffix("") if path.suffix == ".gz" else path
    return unzipped.stem


def _refuse_split(split: int | str | None, split_seed: int | None) -> None:
    if split is not None or split_seed is not None:
        raise UserError(
            f"split is {split!r} and split_seed is {split_seed!r}, but a Dataset has "
            "its split already; leave both out, or load the graph with them"
        )


def _refuse_options(options: ReadOptions | None) -> None:
    given = [] if options is None else options.given()
    if given:
        raise UserError(
            f"{option_flag(given[0])} says how a graph is read, but a Dataset has been "
            "read already; leave it out, or load the graph with it"
        )


def _refuse_idle_seed(dataset: Dataset, split_seed: int | None) -> None:
    is_used = dataset.is_split_made or dataset.num_splits > 1
    if split_seed is not None and not is_used:
        raise UserError(
            f"split_seed is {split_seed}, but {dataset.name} comes with one split; "
            f"leave it out, or have a split made with split {DEFAULT_SPLIT}"
        )


def _not_both(made_splits: int, reason: str) -> UserError:
    return UserError(f"splits is {made_splits}, but {reason}; leave one of them out")


def _with_all_parts(datasets: dict[int, Dataset]) -> dict[int, Dataset]:
    # Before the first is used, so that no work is lost when a later one fails.
    for number, dataset in datasets.items():
        _refuse_empty_parts(number, dataset)
    return datasets


def _refuse_empty_parts(number: int, dataset: Dataset) -> None:
    for mask in MASKS:
        if not dataset.store[mask].any():
            raise UserError(
                f"split {number} of {dataset.name} has no nodes in {mask}; fill it, or "
                "choose another split"
            )
