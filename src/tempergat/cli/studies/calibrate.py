"""`tempergat calibrate`: settings that the paper does not state."""

from pathlib import Path
from typing import Annotated

import typer

from tempergat.cli.options.help_text import examples
from tempergat.cli.options.shared import (
    DeviceName,
    Json,
    OutFolder,
    Quiet,
    parse_device,
    require_writable,
)
from tempergat.cli.ui.graphs import load_graph, refuse_unknown_name
from tempergat.cli.ui.json_output import print_json
from tempergat.cli.ui.output import echo
from tempergat.cli.ui.spinner import spinner
from tempergat.cli.ui.stopping import stoppable

STORE_NAME = "store.sqlite"


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(
        epilog=examples(
            "tempergat calibrate cora",
            "tempergat calibrate cora citeseer pubmed --device cuda",
        )
    )(calibrate)


def calibrate(
    datasets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DATASET",
            help="Some of cora, citeseer, pubmed; all three when left out.",
            show_default=False,
        ),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(help="Folder for calibration.csv; --out when left out."),
    ] = None,
    device: DeviceName = "auto",
    out: OutFolder = Path("tempergat-out/calibration"),
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Try settings that the paper does not state.

    Uses the baselines only: trains gcn, gat and gatv2 in every cell of a fixed grid and
    chooses the cell whose means are nearest to the paper's. The runs go to
    calibration.csv, where the rows of other datasets stay. A stopped command continues
    when it is run again.
    """
    for name in datasets or ():
        refuse_unknown_name(name)
    folder = out if results is None else results
    with spinner("starting", quiet=quiet):
        from tempergat.cli.ui.progress import progress_lines
        from tempergat.cli.ui.tables import error_console, output_console, print_table
        from tempergat.study import tuning
        from tempergat.study.engine import Store, export_runs
        from tempergat.study.paper import read_paper
        from tempergat.study.search import load_calibration

        plan, paper = load_calibration(), read_paper()
        names = datasets or list(plan.datasets)
        for name in names:
            tuning.grid_of(plan, name)
        where = parse_device(device)
        require_writable(out)
        require_writable(folder)
    console = error_console()
    found = []
    with stoppable(), Store(out / STORE_NAME) as store:
        for name in names:
            graph = load_graph(name, None, None, None if quiet else console)
            show = None if quiet else progress_lines(console, name)
            found.append(tuning.calibrate(graph, plan, paper[name], store, where, show))
        merged = export_runs(store, folder / tuning.CALIBRATION_CSV, names)
    if as_json:
        print_json(tuning.calibration_json(found))
        return
    for one in found:
        print_table(output_console(), tuning.calibration_table(one, paper[one.dataset]))
    echo(merged.sentence)
