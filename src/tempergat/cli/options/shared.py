"""Options that several commands have: their completion, and how they are read."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tempergat.base import UserError, is_standard_output
from tempergat.comparison import MOST_RUNS

if TYPE_CHECKING:
    import torch


# Where no name fits, the shell offers files, which are graphs too.
def complete_method(typed: str) -> list[str]:
    """The methods whose name starts with what was typed."""
    from tempergat.nn import METHODS

    return [name for name in METHODS if name.startswith(typed)]


def complete_methods(typed: str) -> list[str]:
    """The same for the last name of a list like `gat,temp`."""
    before, comma, last = typed.rpartition(",")
    return [f"{before}{comma}{name}" for name in complete_method(last)]


def complete_dataset(typed: str) -> list[str]:
    """The datasets whose name starts with what was typed."""
    from tempergat.data import CATALOG

    return [name for name in CATALOG if name.startswith(typed)]


DatasetName = Annotated[
    str,
    typer.Argument(
        metavar="DATASET|PATH",
        help="A name (`tempergat data list`) or the path of your own graph.",
        autocompletion=complete_dataset,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose", help="Print all notes below tables, which the report has too."
    ),
]


def parse_runs(text: str) -> "int | Literal['paper']":
    """The number of runs; `paper` stays as it is.

    Raises:
        UserError: The text is not `paper` and not a number in the range.
    """
    if text == "paper":
        return "paper"
    # Python refuses to read numbers of thousands of digits.
    is_short = len(text) <= len(str(MOST_RUNS))
    is_number = text.isascii() and text.isdigit() and is_short
    if not is_number or not 1 <= int(text) <= MOST_RUNS:
        raise UserError(
            f"--runs is {text!r}; give a number from 1 to {MOST_RUNS}, or paper for "
            "as many as the recipe says"
        )
    return int(text)


def parse_methods(text: str) -> list[str]:
    """The methods in a list like `gat,gatv2`, separated by commas or spaces.

    Raises:
        UserError: The list is empty, names a method twice, or there is no such method.
    """
    from tempergat.nn import find_method

    names = text.replace(",", " ").split()
    if not names:
        raise UserError(f"--methods is {text!r}; give some, like gat,temp_gated")
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"--methods names {name} twice; name each method once")
        find_method(name)
    return names


def parse_split(text: str | None) -> int | str | None:
    """The number of a split, or percentages as they were written.

    Raises:
        UserError: The text is empty.
    """
    if text is None:
        return None
    if not text.strip():
        raise UserError(
            f"--split is {text!r}; give the number of an official split, or "
            "percentages like 60/20/20"
        )
    return int(text) if text.isascii() and text.isdigit() else text


def parse_device(name: str) -> "torch.device":
    """The device of a name, as `tempergat.training.choose_device` does.

    From then on the process keeps the memory it frees.

    Raises:
        UserError: torch does not see the device, or the name is not one.
    """
    from tempergat.training import choose_device, keep_freed_memory

    keep_freed_memory()
    return choose_device(name, "--device")


def require_writable_file(out: Path) -> None:
    """Refuse a file that cannot be made, before the work for its content is done.

    Raises:
        UserError: Its folder cannot be created or written to.
    """
    # A FIFO or a device can be written into where no file can be made.
    if not is_standard_output(out) and (out.is_file() or not out.exists()):
        require_writable(out.parent)


def require_writable(folder: Path) -> None:
    """Refuse a folder that cannot be created or written to.

    Raises:
        UserError: The folder or the nearest existing one above it is read-only, or is
            a file.
    """
    # Path.exists would raise for a folder below one that may not be entered.
    nearest = next(
        path for path in (folder, *folder.absolute().parents) if os.path.exists(path)
    )
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        raise UserError(
            f"cannot write to {folder}: {nearest} is "
            f"{'read-only' if nearest.is_dir() else 'a file'}; choose another folder "
            "with --out"
        )
