"""Commands about stores: `tempergat report` and `export`."""

from pathlib import Path
from typing import Annotated

import typer

from tempergat.base import UserError
from tempergat.cli.options.groups import with_options
from tempergat.cli.options.shared import Json, require_writable_file
from tempergat.cli.ui.graphs import refuse_unknown_name
from tempergat.cli.ui.output import echo, echo_beside, print_json, write_output

EXAMPLES = {
    "report": (
        "tempergat report",
        "tempergat report tempergat-out --baseline gat --out report.html",
        "tempergat report first/ second/ third/ --out report.html",
        "tempergat report --checkpoint tempergat-out/cora-temp_gated-seed0",
    ),
    "export": (
        "tempergat export tempergat-out/store.sqlite",
        "tempergat export first.sqlite second.sqlite --to runs.csv",
    ),
}
_STORES_HELP = "Stores of `tempergat compare`, or its output folders."


@with_options(out=("baseline",))
def report(
    stores: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="STORE", help=_STORES_HELP, show_default="tempergat-out"
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The file to write, - for standard output; report.html beside the "
            "first store when left out.",
            show_default=False,
        ),
    ] = None,
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
    *,
    baseline: str | None,
) -> None:
    """Write finished comparisons as one HTML file.

    It needs no network. It has the answer, the tables, every run, learning curves, what
    temperatures and gates learned, confusion matrices, costs, and what is needed to
    repeat it. Of several stores, as several machines make them, it shows all runs
    together.
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

    paths = stores or [Path("tempergat-out")]
    folder = paths[0] if paths[0].is_dir() else paths[0].parent
    path = out or folder / "report.html"
    require_writable_file(path)
    stored = stored_comparisons(paths, baseline=baseline)
    model = None if checkpoint is None else load_model(checkpoint, device="cpu")
    shown = stored[0] if len(stored) == 1 else Comparisons(tuple(stored))
    write_output(shown.to_html(model=model, graph=data), out, path)
    echo_beside(f"report   {path}", path)
    answer = shown.verdict if isinstance(shown, Comparisons) else str(shown.answer)
    echo_beside(answer, path)


def export(
    stores: Annotated[list[Path], typer.Argument(metavar="STORE", help=_STORES_HELP)],
    to: Annotated[Path, typer.Option(help="The CSV to write.")] = Path(
        "tempergat-out/runs.csv"
    ),
    as_json: Json = False,
) -> None:
    """Write the runs of stores as CSV, one row per run.

    Of methods trained with plain and default, these are the runs that are compared. An
    existing CSV keeps the rows of datasets that the stores lack.
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
