"""The graph that a command is about."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tempergat.base.errors import UserError
from tempergat.cli.ui.options import parse_split

if TYPE_CHECKING:
    from rich.console import Console

    from tempergat.data import Dataset
    from tempergat.data.fetch.download import Progress

GENERATED = "csbm"
# Gaussian noise on every feature, three in ten of them lost, and classes so mixed that
# gcn and gat are right about four times in five: what the other methods make of it
# played no part in the choice.
DEMONSTRATION: dict[str, Any] = {
    "a": 10.0,
    "b": 5.0,
    "sigma": 1.0,
    "rho": 0.3,
    "tau": 1.0,
}
_MEGABYTE = 1e6


def load_graph(
    name: str,
    split: str | None,
    split_seed: int | None,
    console: "Console | None",
    labelled: bool = True,
) -> "Dataset":
    """Load the graph a command names.

    Args:
        name: A name in the catalogue or a path.
        split: As the user wrote it.
        split_seed: Seed of a split made here.
        console: Where to show downloads; None to show nothing.
        labelled: Whether a graph of one's own must have labels.

    Raises:
        UserError: There is no such graph, or it cannot be used.
    """
    from tempergat.data import load
    from tempergat.data.catalog.entries import CATALOG

    if not name.strip():
        raise UserError(
            f"the dataset is {name!r}; give a name (`tempergat data list`) or the path "
            "of a graph of your own"
        )
    options: dict[str, Any] = DEMONSTRATION if name.lower() == GENERATED else {}
    with _download_display(console) as progress:
        graph = load(
            name,
            split=parse_split(split),
            split_seed=split_seed,
            labelled=labelled,
            progress=progress,
            **options,
        )
    if split_seed is not None and not _is_chosen_by_seed(graph):
        raise UserError(
            f"--split-seed is {split_seed}, but {graph.name} comes with one split; "
            "leave it out, or have a split made with --split 60/20/20"
        )
    if graph.name in CATALOG:
        return graph
    # The folder's or file's own name is short enough for tables, and bytes in it that
    # are no text are replaced: neither tables nor the store could hold them.
    stem = os.fsencode(Path(name).resolve().stem)
    return replace(graph, name=stem.decode(errors="replace"))


def _is_chosen_by_seed(graph: "Dataset") -> bool:
    return graph.split.startswith("made") or graph.num_splits > 1


def load_splits(
    name: str,
    split: str | None,
    split_seed: int | None,
    most: int,
    console: "Console | None",
) -> dict[int, "Dataset"]:
    """Load a graph with each of its splits, by their numbers.

    Args:
        name: A name in the catalogue or a path.
        split: As the user wrote it; a split of its own choice is the only one.
        split_seed: Likewise.
        most: How many splits are wanted at most.
        console: Where to show downloads; None to show nothing.

    Raises:
        UserError: There is no such graph, or it cannot be used.
    """
    first = load_graph(name, split, split_seed, console)
    chosen = parse_split(split)
    if split is not None:
        return {chosen if isinstance(chosen, int) else 0: first}
    if split_seed is not None:
        return {split_seed % first.num_splits: first}
    graphs = {0: first}
    for number in range(1, min(first.num_splits, most)):
        graph = load_graph(name, str(number), None, None)
        _share_all_but_masks(graph, first)
        graphs[number] = graph
    if len(graphs) > 1:
        # All of them now, so that no work is lost when the turn of one comes.
        for number, graph in graphs.items():
            _refuse_empty_parts(number, graph)
    return graphs


def _refuse_empty_parts(number: int, graph: "Dataset") -> None:
    from tempergat.data.dataset import MASKS

    for mask in MASKS:
        if not graph.store[mask].any():
            raise UserError(
                f"split {number} of {graph.name} has no nodes in {mask}; fill it, or "
                "choose another split with --split"
            )


def _share_all_but_masks(graph: "Dataset", first: "Dataset") -> None:
    """Let go of what is in memory twice: splits of one graph differ in masks only."""
    from tempergat.data.dataset import MASKS

    for store, same in zip(graph.data.stores, first.data.stores, strict=True):
        for key in set(store.keys()) - set(MASKS):
            store[key] = same[key]


@contextmanager
def _download_display(console: "Console | None") -> Iterator["Progress | None"]:
    if console is None:
        yield None
        return
    if not console.is_terminal:
        announced: set[str] = set()

        def announce(file: str, done: int, size: int | None) -> None:
            if file not in announced:
                announced.add(file)
                console.print(f"downloading {file}{_of(size)}")

        yield announce
        return
    with console.status("") as status:

        def show(file: str, done: int, size: int | None) -> None:
            status.update(f"downloading {file}: {done / _MEGABYTE:.1f} MB{_of(size)}")

        status.update("loading the graph")
        yield show


def _of(size: int | None) -> str:
    return "" if size is None else f" of {size / _MEGABYTE:.1f} MB"
