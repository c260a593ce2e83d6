"""The graph that a command is about."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tempergat.cli.options.groups import ReadingOptions
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
    reading: ReadingOptions,
) -> "Dataset":
    """Load the graph a command names.

    Args:
        name: A name in the catalogue or a path.
        split: As the user wrote it.
        split_seed: Seed of a split made here.
        console: Where to show downloads and the size of the graph; None to show
            neither. Notes on how the graph was read are shown in any case.
        reading: How a user graph is read.

    Raises:
        UserError: There is no such graph, or it cannot be used.
    """
    from tempergat.data import as_dataset, describe

    with download_display(console) as progress:
        graph = as_dataset(
            name,
            split=parse_split(split),
            split_seed=split_seed,
            progress=progress,
            options=reading.options(),
            scale=reading["scale"],
        )
    if console is not None:
        console.print(describe(graph))
    print_notes(graph)
    return graph


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
    from tempergat.cli.ui.tables import SafeConsole

    for note in graph.notes:
        SafeConsole(stderr=True).print(f"note: {note}", soft_wrap=True)


@contextmanager
def download_display(console: "Console | None") -> Iterator["Progress | None"]:
    """Gives what shows downloads on a console; nothing for None."""
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
