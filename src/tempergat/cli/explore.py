"""`tempergat explore`: what a trained model does, node by node, as one HTML file."""

from pathlib import Path
from typing import Annotated

import typer

from tempergat.cli.options.shared import require_writable_file
from tempergat.cli.ui.graphs import print_notes, refuse_unknown_name
from tempergat.cli.ui.output import echo_beside, write_output

EXAMPLES = (
    "tempergat explore tempergat-out/cora-temp_gated-seed0",
    "tempergat explore CHECKPOINT my/graph --out explore.html",
)


def explore(
    checkpoint: Annotated[
        Path,
        typer.Argument(
            metavar="CHECKPOINT",
            help="A checkpoint of `tempergat train`, or its folder.",
        ),
    ],
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="DATASET|PATH",
            help="A name from `tempergat data list`, or the path of your own graph; "
            "what the checkpoint names when left out.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The file to write; - for standard output.",
            show_default="explore.html",
        ),
    ] = None,
) -> None:
    """Write a page that shows a trained model node by node.

    It has attention weights, gates and predictions. It is one HTML file that needs no
    network. Drag the temperature of a layer and see attention weights and predictions
    change; search nodes, or go through the wrongly classified ones. Larger graphs come
    as a sample of their nodes, and the page says so.
    """
    if data is not None:
        refuse_unknown_name(data)
    path = out or Path("explore.html")
    require_writable_file(path)
    from tempergat.comparison import explorer_page, record
    from tempergat.training import load_model

    recorded = record(load_model(checkpoint, device="cpu"), data)
    page = explorer_page(recorded)
    write_output(page, out, path)
    print_notes(recorded.dataset)
    shown = int(recorded.sample.shown.sum())
    part = "" if recorded.sample.is_whole else f" of {recorded.num_nodes:,}"
    size = len(page.encode()) / 1e6
    echo_beside(f"explorer {path}   {shown:,}{part} nodes, {size:.1f} MB", path)
