"""`tempergat methods`: the table of methods."""

from tempergat.cli.options.shared import Json
from tempergat.cli.ui.output import print_json

EXAMPLES = (
    "tempergat methods",
    "tempergat methods --json",
)


def methods(as_json: Json = False) -> None:
    """The methods and what they are made of."""
    from tempergat.cli.ui.tables import output_console, print_table
    from tempergat.comparison import Table
    from tempergat.nn import METHODS

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
    print_table(output_console(), table)
