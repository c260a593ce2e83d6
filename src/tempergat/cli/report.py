"""`tempergat report`: finished comparisons as one HTML file."""

from pathlib import Path
from typing import Annotated

import typer

from tempergat.base import UserError
from tempergat.cli.options.shared import Baseline, require_writable_file
from tempergat.cli.ui.graphs import refuse_unknown_name
from tempergat.cli.ui.output import echo_beside, write_output

EXAMPLES = (
    "tempergat report",
    "tempergat report tempergat-out --baseline gat --out report.html",
    "tempergat report --checkpoint tempergat-out/cora-temp_gated-seed0",
)


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
            help="The file to write, - for standard output; report.html beside the "
            "store when left out.",
            show_default=False,
        ),
    ] = None,
    baseline: Baseline = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="A checkpoint of `tempergat train` to show node by node at the end, "
            "as `tempergat explore` does.",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            help="With --checkpoint: the name or path of its graph, if the checkpoint "
            "does not name it.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write finished comparisons as one HTML file.

    It needs no network. It has the answer, the tables, every run, learning curves, what
    temperatures and gates learned, confusion matrices, costs, and what is needed to
    repeat it.
    """
    if data is not None:
        if checkpoint is None:
            raise UserError(
                f"--data {data} is the graph of a checkpoint; add --checkpoint, or "
                "leave it out"
            )
        refuse_unknown_name(data)
    from tempergat.comparison import Comparisons, stored_comparisons
    from tempergat.training import load_model

    folder = store if store.is_dir() else store.parent
    path = out or folder / "report.html"
    require_writable_file(path)
    stored = stored_comparisons(store, baseline=baseline)
    model = None if checkpoint is None else load_model(checkpoint, device="cpu")
    shown = stored[0] if len(stored) == 1 else Comparisons(tuple(stored))
    write_output(shown.to_html(model=model, graph=data), out, path)
    echo_beside(f"report   {path}", path)
