"""`tempergat methods`: the table of methods."""

import json
from typing import Annotated

import typer

_GATES = {None: "-", "post": "after aggregation", "first": "before attention"}


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(methods)


def methods(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """The methods and what they are made of."""
    from tempergat.cli.ui.tables import output_console, print_table
    from tempergat.nn.methods import METHODS
    from tempergat.study.report import Table

    if as_json:
        listed = [{"method": name, **row._asdict()} for name, row in METHODS.items()]
        typer.echo(json.dumps({"methods": listed}, indent=1))
        return
    rows = tuple(
        (
            name,
            row.backbone,
            "one per layer" if row.temperature else "-",
            _GATES[row.gate],
            "yes" if row.in_paper else "no",
        )
        for name, row in METHODS.items()
    )
    table = Table(
        "Methods",
        ("method", "backbone", "temperature", "gate", "in the paper"),
        rows,
        ("`tempergat compare` takes those in the paper unless told otherwise.",),
    )
    print_table(output_console(), table)
