"""`tempergat reproduce`: the paper's tables and figures, made from results/."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

RESULTS = Annotated[Path, typer.Option(help="The project's folder of results.")]
DOCS = Annotated[Path, typer.Option(help="Where the page and its figures go.")]
JSON = Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")]

reproduce_app = typer.Typer(
    no_args_is_help=True, help="The paper's tables and figures, made from results/."
)


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.add_typer(reproduce_app, name="reproduce")


@reproduce_app.command()
def homogeneous(
    results: RESULTS = Path("results"),
    docs: DOCS = Path("docs"),
    as_json: JSON = False,
) -> None:
    """Write docs/reproduction.md: our runs beside the paper's first table."""
    from tempergat.study.paper.reproduction import (
        reproduce_homogeneous,
        reproduction_json,
    )

    report = reproduce_homogeneous(results, docs)
    if as_json:
        _print_json(reproduction_json(report))
        return
    gains = [claim.outcome for claim in report.claims if claim.outcome is not None]
    typer.echo(
        f"{len(gains)} gains in the paper's table: {gains.count('holds')} hold, "
        f"{gains.count('within noise')} within noise, {gains.count('reversed')} "
        "reversed"
    )
    typer.echo(f"wrote {report.page}")


@reproduce_app.command()
def ranks(
    results: RESULTS = Path("results"),
    docs: DOCS = Path("docs"),
    as_json: JSON = False,
) -> None:
    """Draw the average-rank figures and list variants below their backbone."""
    from tempergat.study.paper.ranks import ranks_json, reproduce_ranks

    report = reproduce_ranks(results, docs)
    if as_json:
        _print_json(ranks_json(report))
        return
    for figure in report.figures:
        best, rank = next(iter(figure.table.average.items()))
        typer.echo(
            f"{figure.title}: best {best} ({rank:.2f}), critical difference "
            f"{figure.table.critical_difference:.2f}"
        )
    for line in report.not_drawn:
        typer.echo(line)
    typer.echo(
        f"in {len(report.below)} of {report.compared} cells of the paper's tables a "
        "variant stands below its backbone"
    )
    typer.echo(f"wrote {report.page}")


@reproduce_app.command()
def diagnose(
    results: RESULTS = Path("results"),
    docs: DOCS = Path("docs"),
    as_json: JSON = False,
) -> None:
    """Write docs/diagnose.md: would a method picked from a screening be a good one?"""
    from tempergat.study.diagnose.page import reproduce_diagnose

    report = reproduce_diagnose(results, docs)
    if as_json:
        choices = [asdict(choice) for choice in report.choices]
        _print_json({"choices": choices, "page": str(report.page)})
        return
    typer.echo(report.verdict)
    typer.echo(f"wrote {report.page}")


@reproduce_app.command()
def export(
    stores: Annotated[list[Path], typer.Argument(help="Stores of finished runs.")],
    to: Annotated[Path, typer.Option(help="The CSV to write.")] = Path(
        "results/homogeneous.csv"
    ),
    as_json: JSON = False,
) -> None:
    """Write the runs of one or more stores as CSV, one row per run.

    A CSV that is there already keeps the rows of datasets that the stores lack.
    """
    from tempergat.study.engine import export_stores

    merged = export_stores(stores, to)
    if as_json:
        _print_json(
            {
                "runs": sum(merged.written.values()),
                "replaced": dict(merged.replaced),
                "kept": dict(merged.kept),
                "file": str(to),
            }
        )
        return
    typer.echo(merged.sentence)


def _print_json(value: dict[str, Any]) -> None:
    typer.echo(json.dumps(value, indent=1, allow_nan=False))
