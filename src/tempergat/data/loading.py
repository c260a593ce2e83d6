"""`load`: a name, or the path of a graph of one's own, to a dataset."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from tempergat.base.errors import UserError
from tempergat.base.system_errors import telling_full_disk
from tempergat.data.catalog.entries import Entry, find_entry
from tempergat.data.csbm import csbm
from tempergat.data.dataset import Dataset, fingerprint
from tempergat.data.features import as_layout
from tempergat.data.fetch.download import Progress
from tempergat.data.fetch.locate import as_path, data_root, locked, obtain
from tempergat.data.formats.raw_graph import Graph, to_pyg
from tempergat.data.processed import open_graph, write_graph
from tempergat.data.readers import homogeneous, oag, ogb, planetoid, pokec
from tempergat.data.readers import magnn as heterogeneous
from tempergat.data.splits import DEFAULT_SPLIT_SEED, make_split, set_masks
from tempergat.data.user.loading import OWN_SUFFIXES, load_own

Reader = Callable[..., Graph]

READERS: dict[str, Reader] = {
    "planetoid": planetoid.read_planetoid,
    "arxiv": ogb.read_arxiv,
    "products": ogb.read_products,
    "mag": ogb.read_mag,
    "mag_year": ogb.read_mag_year,
    "reddit": homogeneous.read_reddit,
    "actor": homogeneous.read_actor,
    "tolokers": homogeneous.read_tolokers,
    "amazon": homogeneous.read_amazon,
    "dblp": heterogeneous.read_dblp,
    "imdb": heterogeneous.read_imdb,
    "pokec": pokec.read_pokec,
    "oag": oag.read_oag,
}


def load(
    name: str | os.PathLike[str],
    root: str | os.PathLike[str] | None = None,
    *,
    split: int | str | None = None,
    split_seed: int | None = None,
    sparse: str | bool = "auto",
    labelled: bool = True,
    progress: Progress | None = None,
    **options: Any,
) -> Dataset:
    """Loads a dataset by name, or a graph of one's own by path.

    Args:
        name: A name from `tempergat data list`, or a path: a `.pt` or `.npz` file, or
            a folder with `nodes.csv` and `edges.csv`. Write `./cora` for a folder
            that is called like a dataset.
        root: Where downloads are kept; the user's cache when left out.
        split: The number of an official split, or percentages like `"60/20/20"` for a
            split made here. The official split, or the first of them, when left out.
        split_seed: Seed of a split made here.
        sparse: Whether features are a sparse CSR tensor: True, False, or `"auto"`,
            which is sparse below 10 % non-zeros.
        labelled: Whether a graph of one's own must have labels; False takes it without
            labels and split, for prediction.
        progress: Called with file name, bytes done and bytes in all while downloading.
        **options: What one dataset takes: `directed` for ogbn-arxiv and graphs of
            one's own, `target` for heterogeneous graphs of one's own, and the
            parameters of `csbm`.

    Raises:
        UserError: There is no such dataset, an option does not fit it, or its files
            cannot be had or are not what they should be.
    """
    entry = _named_entry(name)
    if entry is None:
        dataset = load_own(
            as_path(name),
            split=split,
            split_seed=split_seed,
            labelled=labelled,
            **_own_options(options),
        )
        return _with_layout(dataset, sparse)
    if entry.reader == "csbm":
        return _with_layout(_generate(split, split_seed, options), sparse)
    unknown = sorted(set(options) - set(entry.options))
    if unknown:
        raise UserError(
            f"{entry.name} takes no option {unknown[0]!r}; it takes "
            + ", ".join(("split", "split_seed", "sparse", *entry.options))
        )
    return load_entry(
        entry, data_root(root), split, split_seed, sparse, progress, options
    )


def _named_entry(name: str | os.PathLike[str]) -> Entry | None:
    """The entry of a name, or None for a path; a name goes before a path like it."""
    if not isinstance(name, str) or os.sep in name or Path(name).suffix in OWN_SUFFIXES:
        return None
    try:
        return find_entry(name)
    except UserError:
        if os.path.exists(name):
            return None
        raise


def _own_options(options: dict[str, Any]) -> dict[str, Any]:
    unknown = sorted(set(options) - {"directed", "target"})
    if unknown:
        raise UserError(
            f"a graph of one's own takes no option {unknown[0]!r}; it takes split, "
            "split_seed, sparse, directed, target"
        )
    return options


def _generate(
    split: int | str | None, split_seed: int | None, options: dict[str, Any]
) -> Dataset:
    if split is not None:
        options = {**options, "split": _made_split("csbm", split)}
    if split_seed is not None:
        options = {**options, "split_seed": split_seed}
    try:
        return csbm(**options)
    except TypeError as error:
        raise UserError(
            f"csbm: {error}; it takes n, a, b, mu, d, classes, sigma, rho, tau, seed, "
            "split and split_seed"
        ) from error


def _made_split(name: str, split: int | str) -> str:
    if isinstance(split, int):
        raise UserError(
            f"split is {split}, but {name} has no official splits; give percentages "
            "like 60/20/20"
        )
    return split


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
    graph, source = _read_graph(entry, root, progress, options or {})
    index, made = _choose_split(entry, split, split_seed)
    data = to_pyg(graph, entry.target, index or 0)
    store = data if entry.target is None else data[entry.target]
    if made is not None:
        seed = DEFAULT_SPLIT_SEED if split_seed is None else split_seed
        set_masks(store, make_split(store.y.numpy(), made, seed))
        described = f"made: {made} with seed {seed}"
        num_splits = 1
    else:
        described = entry.split
        num_splits = entry.num_splits
        if num_splits > 1:
            described += f", number {index}"
    dataset = Dataset(
        name=entry.name,
        data=data,
        target=entry.target,
        num_classes=entry.num_classes,
        metric=entry.metric,
        source=source,
        fingerprint=fingerprint(data, _known_hashes(graph)),
        license=entry.license,
        split=described,
        num_splits=num_splits,
    )
    if entry.keep_processed and sparse == "auto":
        # Large features are dense; looking at their density would read all of them.
        return dataset
    return _with_layout(dataset, sparse)


def _known_hashes(graph: Graph) -> dict[str, str]:
    """Hashes of what the split does not change."""
    return {n: h for n, h in graph.hashes.items() if not n.endswith("_mask")}


def _read_graph(
    entry: Entry, root: Path, progress: Progress | None, options: dict[str, Any]
) -> tuple[Graph, str]:
    """The arrays of a graph, from its processed form where there is one."""
    if not entry.keep_processed:
        return _read_raw(entry, root, progress, options)
    chosen = [f"-{name}" for name, value in sorted(options.items()) if value]
    folder = root / entry.name / f"processed{''.join(chosen)}"
    source = f"processed in {folder}"
    graph = open_graph(folder)
    if graph is not None:
        return graph, source
    with locked(root / entry.name / ".processed.lock"):
        # Another process may have written it while this one waited.
        graph = open_graph(folder)
        if graph is None:
            graph, _ = _read_raw(entry, root, progress, options)
            with telling_full_disk(folder):
                write_graph(folder, graph)
            graph = open_graph(folder)
    if graph is None:
        raise UserError(
            f"{folder} cannot be read back; check the disk, or move the data root with "
            "TEMPERGAT_DATA"
        )
    return graph, source


def _read_raw(
    entry: Entry, root: Path, progress: Progress | None, options: dict[str, Any]
) -> tuple[Graph, str]:
    paths = obtain(entry, root, progress)
    graph = READERS[entry.reader](paths, **options)
    found = sum(graph.num_nodes.values())
    if abs(found - entry.num_nodes) <= entry.num_nodes // 100:
        return graph, f"read from {next(iter(paths.values())).parent}"
    if entry.swapped_files:
        other = replace(entry, files=entry.swapped_files, swapped_files=())
        return _read_raw(other, root, progress, options)
    raise UserError(
        f"{next(iter(paths.values()))} holds a graph of {found} nodes, but "
        f"{entry.name} has {entry.num_nodes}; it belongs to another dataset, so fetch "
        "the right one"
    )


def _choose_split(
    entry: Entry, split: int | str | None, split_seed: int | None
) -> tuple[int | None, str | None]:
    """The number of an official split, or the percentages of one to be made."""
    if isinstance(split, str):
        return None, split
    if entry.num_splits == 0:
        if split is not None:
            _made_split(entry.name, split)
        return None, entry.made_split
    if split is None:
        # A seed alone chooses among the official splits, so that a study over seeds
        # goes through all of them.
        return (split_seed or 0) % entry.num_splits, None
    if not 0 <= split < entry.num_splits:
        raise UserError(
            f"{entry.name} has no split {split}; choose 0 to {entry.num_splits - 1}"
        )
    return split, None


def _with_layout(dataset: Dataset, sparse: str | bool) -> Dataset:
    """Sets the layout last, so that it does not change the fingerprint."""
    for store in dataset.data.node_stores:
        if isinstance(store.get("x"), torch.Tensor):
            store.x = as_layout(store.x, sparse)
    return dataset
