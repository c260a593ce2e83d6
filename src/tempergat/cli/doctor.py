"""What there is: `tempergat methods`, `recipe`, and `doctor` on this installation."""

import itertools
from pathlib import Path
from typing import Annotated

import typer

from tempergat.cli.examination import print_findings
from tempergat.cli.options.shared import Json
from tempergat.cli.ui.output import echo, print_json

EXAMPLES = {
    "methods": ("tempergat methods", "tempergat methods --settings"),
    "recipe": ("tempergat recipe cora", "tempergat recipe default"),
    "doctor": ("tempergat doctor", "tempergat doctor --json"),
}


def methods(
    settings: Annotated[
        bool,
        typer.Option("--settings", help="List the settings that --set takes instead."),
    ] = False,
    as_json: Json = False,
) -> None:
    """The methods and what they are made of."""
    from tempergat.cli.ui.tables import SafeConsole, print_table
    from tempergat.comparison import Table
    from tempergat.nn import METHODS

    if settings:
        _print_settings(as_json)
        return
    if as_json:
        listed = [
            {"method": name, "description": row.description, **row._asdict()}
            for name, row in METHODS.items()
        ]
        print_json({"methods": listed})
        return
    rows = tuple(
        (name, row.description, "yes" if row.in_paper else "no")
        for name, row in METHODS.items()
    )
    table = Table(
        "Methods",
        ("method", "what it is", "in the paper"),
        rows,
        (
            "`tempergat compare` compares those in the paper and mlp; --methods names "
            "others.",
        ),
    )
    print_table(SafeConsole(), table)


def _print_settings(as_json: bool) -> None:
    """Every setting: its values, what it does, and what has it."""
    from tempergat.training import HAVING, NAMES, PARTS, help_of, values_of

    facts = [
        {
            "setting": name,
            "short": next((o for o in NAMES if name in NAMES[o] and o != name), None),
            "values": values_of(name),
            "for": HAVING[part],
            "help": help_of(name),
        }
        for name, part in PARTS.items()
    ]
    if as_json:
        print_json({"settings": facts})
        return
    for title, group in itertools.groupby(facts, lambda one: one["for"]):
        echo(f"for {title}:")
        for one in group:
            also = f" (short: {one['short']})" if one["short"] else ""
            echo(f"  {one['setting']}{also}: {one['values']}\n      {one['help']}")


def recipe(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="A recipe or a YAML file; lists the recipes when left out.",
        ),
    ] = None,
) -> None:
    """Print a recipe in full as YAML, to copy."""
    from tempergat.training import recipe_names, recipe_text

    if name is None:
        echo("\n".join(recipe_names()))
        return
    if Path(name).suffix:
        from tempergat.training import load_recipe

        # Refuses a file with settings that there are not.
        load_recipe(name)
    echo(recipe_text(name))


def doctor(as_json: Json = False) -> None:
    """Versions, devices and attention kernels."""
    print_findings(as_json=as_json)
