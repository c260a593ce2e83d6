"""From a graph's files to the report in a real browser."""

import csv
import random
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tempergat.comparison.storage.store import Store
from tests.cli.conftest import Command
from tests.support.browser import opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow

NAME = '"><img>'
CLASSES = ("<script>window.harmed=1</script>", "plain", "</td><b>")
METHODS = ("gcn", "gat", "temp_gated")


@pytest.fixture
def folder(command: Command, tmp_path: Path, recipe: Path) -> Path:
    """Where a comparison on a graph with markup in its names was written."""
    made = random.Random(0)
    graph = tmp_path / NAME
    graph.mkdir()
    with (graph / "nodes.csv").open("w") as file:
        lines = csv.writer(file)
        lines.writerow(["id", "label", "a", "b"])
        for node in range(60):
            values = [made.gauss(node % 3, 1.0) for _ in "ab"]
            lines.writerow([node, CLASSES[node % 3], *values])
    with (graph / "edges.csv").open("w") as file:
        lines = csv.writer(file)
        lines.writerow(["source", "target"])
        lines.writerows((node, (node + 3) % 60) for node in range(60))
    ended = command(
        "compare", graph, "--recipe", recipe, "--methods", ",".join(METHODS), "--runs",
        5, "--undirected", "--quiet",
    )  # fmt: skip
    assert ended.status == 0, ended.err
    return tmp_path / "tempergat-out"


def cells_of(page: "Page") -> dict[str, dict[str, str]]:
    """The cells of the table of scores by method and heading."""
    heads = page.locator("table.scores thead th").all_text_contents()
    rows = page.locator("table.scores tbody tr").all()
    cells = [row.locator("th, td").all_text_contents() for row in rows]
    return {row[0].split()[0]: dict(zip(heads, row, strict=True)) for row in cells}


def test_the_numbers_are_those_of_the_store(
    chromium: "Browser", folder: Path, command: Command
) -> None:
    with Store(folder / "store.sqlite", read_only=True) as store:
        runs = store.runs()
    scores = {
        method: np.array(
            [100 * r.selected_scores.test for r in runs if r.method == method]  # type: ignore[union-attr]
        )
        for method in METHODS
    }
    assert command("report").status == 0
    with opened(chromium, folder / "report.html") as page:
        cells = cells_of(page)
        for method, values in scores.items():
            expected = f"{values.mean():.2f} ± {values.std(ddof=1):.2f}"
            assert cells[method]["accuracy"] == expected
            assert cells[method]["runs"] == "5"
        difference = scores["temp_gated"] - scores["gat"]
        assert float(cells["temp_gated"]["difference"]) == pytest.approx(
            difference.mean(), abs=0.005
        )
        dots = page.locator("figure").first.locator(".wide circle.dot title")
        shown = sorted(float(t.split(": ")[1]) for t in dots.all_text_contents())
        every = sorted(np.concatenate(list(scores.values())).round(2).tolist())
        assert shown == pytest.approx(every, abs=0.006)
        words = page.locator("dl.facts").inner_text()
        assert runs[0].fingerprint in words
        assert runs[0].versions["torch"] in words


def test_markup_in_the_names_of_files_and_classes_is_text(
    chromium: "Browser", folder: Path
) -> None:
    (path,) = folder.glob("*.html")
    with opened(chromium, path) as page:
        assert page.evaluate("window.harmed") is None
        assert page.locator("img, td b").count() == 0
        assert NAME in page.locator("h1").inner_text()
        titles = page.locator("figure", has_text="Confusion").locator("svg title")
        assert any(CLASSES[0] in words for words in titles.all_text_contents())
