"""`tempergat methods` prints the table of methods."""

import json

from tempergat.nn.methods import METHODS
from tests.cli.conftest import Command


def test_every_method_has_a_row(command: Command) -> None:
    rows = command("methods").out.splitlines()
    for name, method in METHODS.items():
        (row,) = [row for row in rows if row.split()[:1] == [name]]
        assert row.split()[1] == method.backbone
        assert row.endswith("yes" if method.in_paper else "no")


def test_json_holds_the_same(command: Command) -> None:
    found = json.loads(command("methods", "--json").out)["methods"]
    assert [row["method"] for row in found] == list(METHODS)
    assert found[5] == {
        "method": "temp_gated",
        "backbone": "gat",
        "temperature": "layer",
        "gate": "post",
        "in_paper": True,
    }


def test_a_temperature_per_head_is_distinguished_from_one_per_layer(
    command: Command,
) -> None:
    rows = {line.split()[0]: line for line in command("methods").out.splitlines()}
    assert "one per head" in rows["temp_gated_head"]
    assert "one per layer" in rows["temp_gated"]
    assert "one per" not in rows["mlp"]
