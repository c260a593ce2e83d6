"""The graph that a command is about."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tempergat.cli.options.reading import Reading
from tempergat.cli.options.shared import parse_split

if TYPE_CHECKING:
    from rich.console import Console

    from tempergat.data import Dataset, Progress

DEMONSTRATION = "demo"
_MEGABYTE = 1e6


def load_graph(
    name: str,
    split: str | None,
    split_seed: int | None,
    console: "Console | None",
    reading: Reading | None = None,
    labelled: bool = True,
) -> "Dataset":
    """Load the graph a command names.

    Args:
        name: A name in the catalogue or a path.
        split: As the user wrote it.
        split_seed: Seed of a split made here.
        console: Where to show downloads and the size of the graph; None to show
            neither. Notes on how the graph was read are shown in any case.
        reading: How a user graph is read; the defaults when left out.
        labelled: Whether a user graph must have labels.

    Raises:
        UserError: There is no such graph, or it cannot be used.
    """
    from tempergat.data import as_dataset, describe

    with _download_display(console) as progress:
        graph = as_dataset(
            name,
            split=parse_split(split),
            split_seed=split_seed,
            labelled=labelled,
            progress=progress,
            options=None if reading is None else reading.options(),
            scale=reading is None or reading.scale,
        )
    if console is not None:
        console.print(describe(graph))
    print_notes(graph)
    return graph


def load_splits(
    name: str,
    split: str | None,
    split_seed: int | None,
    max_splits: int,
    console: "Console | None",
    reading: Reading,
    made_splits: int | None = None,
    keep_given_splits: bool = False,
) -> dict[int, "Dataset"]:
    """Load the graph a command names with each of its splits.

    Args:
        name: A name in the catalogue or a path.
        split: As the user wrote it; only this split is loaded.
        split_seed: Likewise.
        max_splits: How many splits are wanted at most.
        console: Where to show downloads; None to show none.
        reading: How a user graph is read.
        made_splits: How many splits to make for a graph that comes with none.
        keep_given_splits: Whether a graph that comes with splits keeps them then;
            otherwise it is refused.

    Raises:
        UserError: There is no such graph, or it cannot be used.
    """
    from tempergat.data import load_splits

    with _download_display(console) as progress:
        graphs = load_splits(
            name,
            split=parse_split(split),
            split_seed=split_seed,
            max_splits=max_splits,
            made_splits=made_splits,
            keep_given_splits=keep_given_splits,
            progress=progress,
            options=reading.options(),
            scale=reading.scale,
        )
    print_notes(next(iter(graphs.values())))
    return graphs


def refuse_unknown_name(name: str) -> None:
    """Raise for a misspelt dataset before torch is loaded, which takes seconds.

    Raises:
        UserError: It is neither a name in the catalogue nor a path.
    """
    from tempergat.data import find_entry

    path = Path(name)
    if path.name == name and not path.suffix and not path.exists():
        find_entry(name)


def print_notes(graph: "Dataset") -> None:
    """Print the notes on how a graph was read to standard error."""
    from tempergat.cli.ui.tables import error_console

    for note in graph.notes:
        error_console().print(f"note: {note}", soft_wrap=True)


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
