"""What several commands take, checked before any work is done."""

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tempergat.base import UserError, did_you_mean

if TYPE_CHECKING:
    import torch

    from tempergat.data import Dataset

DEFAULT_RUNS = 10
_MOST_RUNS = 100_000

DatasetName = Annotated[
    str,
    typer.Argument(
        metavar="DATASET|PATH",
        help="A name (`tempergat data list`) or the path of a graph of your own.",
    ),
]
RecipeName = Annotated[
    str | None,
    typer.Option(
        "--recipe",
        help="Settings: the name of a recipe or a YAML file; the dataset's own when "
        "left out.",
    ),
]
Split = Annotated[
    str | None,
    typer.Option(
        help="Number of an official split, or percentages like 60/20/20 of one made "
        "here.",
    ),
]
SplitSeed = Annotated[
    int | None, typer.Option(min=0, help="Seed of a split made here.")
]
DeviceName = Annotated[
    str, typer.Option("--device", help="auto, cpu or cuda (cuda:1 for the second).")
]
OutFolder = Annotated[
    Path, typer.Option("--out", help="Folder for everything that is written.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]


def parse_runs(text: str, recipe_runs: int) -> int:
    """How many runs: a number, or `paper` for the recipe's.

    Raises:
        UserError: It is neither.
    """
    if text == "paper":
        return recipe_runs
    # So many digits at most, as Python refuses to read thousands.
    digits = text.isascii() and text.isdigit() and len(text) <= len(str(_MOST_RUNS))
    if not digits or not 1 <= int(text) <= _MOST_RUNS:
        raise UserError(
            f"--runs is {text!r}; give a number from 1 to {_MOST_RUNS}, or paper for "
            f"the recipe's {recipe_runs}"
        )
    return int(text)


def parse_methods(text: str) -> list[str]:
    """Methods from a list like `gat,gatv2`, each once.

    Raises:
        UserError: One does not exist; the message names the nearest.
    """
    names = [name for name in text.replace(",", " ").split() if name]
    if not names:
        raise UserError(f"--methods is {text!r}; name some, like gat,temp_gated")
    return [checked_method(name) for name in dict.fromkeys(names)]


def checked_method(name: str) -> str:
    """The name of a method that exists.

    Raises:
        UserError: It does not; the message names the nearest.
    """
    from tempergat.nn.methods import METHODS

    if name in METHODS:
        return name
    raise UserError(
        f"there is no method {name!r}; {did_you_mean(name, METHODS)}methods are "
        f"{', '.join(METHODS)}"
    )


def parse_names(text: str, option: str) -> list[str]:
    """Names from a list like `cora,pubmed`, each once.

    Raises:
        UserError: There are none.
    """
    names = list(dict.fromkeys(text.replace(",", " ").split()))
    if not names:
        raise UserError(f"{option} is {text!r}; give some, like cora,pubmed")
    return names


def parse_split(text: str | None) -> int | str | None:
    """A split's number, or its percentages as they are.

    Raises:
        UserError: It is empty.
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
    """The device of a name; the first CUDA device for `auto`, where there is one.

    Raises:
        UserError: There is no such device here.
    """
    from tempergat.training import choose_device

    return choose_device(name, "--device")


def require_writable(folder: Path) -> None:
    """Refuse a folder that could not be made or written to.

    Raises:
        UserError: It is so.
    """
    # os.path, as Path.exists raises where a folder on the way may not be entered.
    nearest = next(
        path for path in (folder, *folder.absolute().parents) if os.path.exists(path)
    )
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        raise UserError(
            f"cannot write to {folder}: {nearest} is "
            f"{'read-only' if nearest.is_dir() else 'a file'}; choose another folder "
            "with --out"
        )


def resume_command() -> str:
    """The command this process was started with, ready to be pasted."""
    program = Path(sys.argv[0])
    if program.name == "__main__.py":
        start = [_as_typed(Path(sys.executable)), "-m", "tempergat"]
    else:
        start = [_as_typed(program)]
    return shlex.join([*start, *sys.argv[1:]])


def _as_typed(program: Path) -> str:
    """The bare name where the shell finds that very program by it."""
    found = shutil.which(program.name)
    is_that = found is not None and Path(found).absolute() == program.absolute()
    return program.name if is_that else str(program)


def describe(dataset: "Dataset") -> str:
    """A dataset's size and split, in two lines."""
    from tempergat.data.dataset import MASKS, node_counts

    nodes = sum(node_counts(dataset.data).values())
    parts = [int(dataset.store[name].sum()) for name in MASKS]
    x = dataset.store.get("x")
    features = f"{x.shape[1]:,} features, " if x is not None else ""
    return (
        f"{dataset.name}: {nodes:,} nodes, {dataset.data.num_edges:,} edges, "
        f"{features}{dataset.num_classes} classes\n"
        f"split {dataset.split}; train/validation/test "
        f"{parts[0]:,}/{parts[1]:,}/{parts[2]:,}"
    )
