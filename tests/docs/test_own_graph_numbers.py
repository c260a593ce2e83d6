"""The commands of docs/own_graph.md give its tables."""

from benchmarks import own_graph


def test_every_table_has_its_command_on_the_page() -> None:
    found = own_graph.commands(own_graph.PAGE.read_text(encoding="utf-8"))
    assert set(found) == {file.stem for file in own_graph.TABLES.glob("*.csv")}
    assert found["texas_4_classes"].startswith("tempergat compare texas_4_classes.npz")
    assert "--directed" in found["cora_ml_directed"]
    assert len(set(found.values())) == len(found)


def test_a_table_that_compare_wrote_is_read_cell_by_cell() -> None:
    text = "**g**\n\n| method | p |\n| --- | ---: |\n| gat † | <0.001 |\n| mlp | - |\n"
    rows = [["method", "p"], ["gat †", "<0.001"], ["mlp", "-"]]
    assert own_graph.printed_table(text) == rows
