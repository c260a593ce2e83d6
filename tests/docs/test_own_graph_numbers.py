"""The tables of docs/own_graph.md are those in results/."""

import csv
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(
    r"^\| `(?P<method>\w+)`(?: †)? \| (?P<mean>[\d.]+) ± (?P<std>[\d.]+) "
    r"\| (?P<difference>\S*) ?\| (?P<p>\S*) ?\| (?P<verdict>[\w ]*?) ?\|$",
    re.MULTILINE,
)


@pytest.fixture
def rows_on_the_page() -> list[dict[str, str]]:
    page = (ROOT / "docs" / "own_graph.md").read_text(encoding="utf-8")
    return [match.groupdict() for match in ROW.finditer(page)]


def test_the_tables_are_those_in_results(
    rows_on_the_page: list[dict[str, str]],
) -> None:
    with (ROOT / "results" / "own_graph" / "tables.csv").open() as file:
        stored = list(csv.DictReader(file))
    shown = ("method", "mean", "std", "difference", "p", "verdict")
    assert rows_on_the_page == [{name: row[name] for name in shown} for row in stored]
