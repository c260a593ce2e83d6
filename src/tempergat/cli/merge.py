"""`tempergat merge`: the stores of several machines in one."""

from pathlib import Path
from typing import Annotated

import typer

from tempergat.cli.options.shared import Json
from tempergat.cli.ui.output import echo, print_json

EXAMPLES = (
    "tempergat merge first/ second/ third/ --out all",
    "tempergat merge a.sqlite b.sqlite --out all.sqlite --json",
)


def merge(
    stores: Annotated[
        list[Path],
        typer.Argument(
            metavar="STORE",
            help="Stores of `tempergat compare`, or its output folders.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            help="The store that takes all runs: a folder, or a file that ends in "
            ".sqlite."
        ),
    ],
    as_json: Json = False,
) -> None:
    """Put the runs of several machines into one store.

    Merges what `tempergat compare --shard` has left on each machine. The stores are
    only read; merging them again changes nothing. Afterwards `tempergat compare` with
    the same arguments, without --shard and with this --out, trains nothing and gives
    the table.
    """
    from tempergat.comparison import merge as merge_stores

    merged = merge_stores(stores, out)
    if as_json:
        print_json(merged.facts)
        return
    for line in merged.sentences:
        echo(line)
    echo(f"table    tempergat compare --table {out}")
