"""`tempergat methods` prints the table of methods."""

import json

from tempergat.nn.methods import METHODS
from tests.cli.conftest import Command


def test_every_method_has_a_row(command: Command) -> None:
    rows = command("methods").out.splitlines()
    for name, method in METHODS.items():
        (row,) = [row for row in rows if row.split()[:1] == [name]]
        assert method.description in row
        assert row.endswith("yes" if method.in_paper else "no")


def test_json_holds_the_same(command: Command) -> None:
    found = json.loads(command("methods", "--json").out)["methods"]
    assert [row["method"] for row in found] == list(METHODS)
    assert found[5] == {
        "method": "temp_gated",
        "description": "GAT + temperature + gate after attention",
        "backbone": "gat",
        "temperature": "layer",
        "gate": "post",
        "in_paper": True,
    }
