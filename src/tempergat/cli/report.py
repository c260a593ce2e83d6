"""`tempergat report`: finished comparisons as one HTML file."""

from pathlib import Path
from typing import Annotated

import typer

from tempergat.cli.ui.help_text import examples
from tempergat.cli.ui.options import Baseline
from tempergat.cli.ui.output import echo


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(
        epilog=examples(
            "tempergat report",
            "tempergat report tempergat-out --baseline gat --out report.html",
        )
    )(report)


def report(
    store: Annotated[
        Path,
        typer.Argument(
            metavar="STORE",
            help="A store of `tempergat compare`, or its output folder.",
        ),
    ] = Path("tempergat-out"),
    out: Annotated[
        Path | None,
        typer.Option(
            help="The file to write; report.html beside the store when left out.",
            show_default=False,
        ),
    ] = None,
    baseline: Baseline = None,
) -> None:
    """Write finished comparisons as one HTML file that needs no network.

    It has the answer, the tables, every run, learning curves, what temperatures and
    gates learned, confusion matrices, costs, and what is needed to repeat it.
    """
    from tempergat.study.comparison import Comparisons, stored_comparisons

    folder = store if store.is_dir() else store.parent
    path = out or folder / "report.html"
    found = stored_comparisons(store, baseline=baseline)
    is_one = len(found) == 1
    report = (
        found[0].to_report(path)
        if is_one
        else Comparisons(tuple(found)).to_report(path)
    )
    echo(f"report   {report}")
