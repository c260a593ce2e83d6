"""`tempergat export`: the runs of stores as CSV."""

from pathlib import Path
from typing import Annotated

import typer

from tempergat.cli.options.shared import Json
from tempergat.cli.ui.output import echo, print_json

EXAMPLES = (
    "tempergat export tempergat-out/store.sqlite",
    "tempergat export first.sqlite second.sqlite --to runs.csv",
)


def export(
    stores: Annotated[
        list[Path], typer.Argument(metavar="STORE", help="Stores of finished runs.")
    ],
    to: Annotated[Path, typer.Option(help="The CSV to write.")] = Path(
        "tempergat-out/runs.csv"
    ),
    as_json: Json = False,
) -> None:
    """Write the runs of stores as CSV, one row per run.

    An existing CSV keeps the rows of datasets that the stores lack.
    """
    from tempergat.comparison import export_stores

    merged = export_stores(stores, to)
    if as_json:
        print_json(
            {
                "runs": sum(merged.written.values()),
                "replaced": dict(merged.replaced),
                "kept": dict(merged.kept),
                "file": str(to),
            }
        )
        return
    echo(merged.sentence)
