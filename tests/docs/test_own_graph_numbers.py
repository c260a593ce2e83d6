"""The commands of docs/own_graph.md give its tables."""

import csv

from benchmarks import own_graph
from tempergat.comparison.report.tables import result_table


def test_every_table_has_its_command_on_the_page() -> None:
    found = own_graph.commands(own_graph.PAGE.read_text(encoding="utf-8"))
    assert set(found) == {file.stem for file in own_graph.TABLES.glob("*.csv")}
    assert found["texas_4_classes"].startswith("tempergat compare texas_4_classes.npz")
    assert "--directed" in found["cora_ml_directed"]
    assert len(set(found.values())) == len(found)


def test_the_tables_are_those_of_the_runs() -> None:
    for name in ("acm", "dblp"):
        table = result_table(own_graph.compared(name))
        with (own_graph.TABLES / f"{name}.csv").open(encoding="utf-8") as file:
            rows = [row[: -len(own_graph.ORIGIN)] for row in csv.reader(file)]
        assert rows == [list(row) for row in (table.columns, *table.all_rows)]
