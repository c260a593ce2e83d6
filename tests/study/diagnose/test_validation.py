"""The rule that `diagnose` does not recommend, and the page that says why."""

import csv
from pathlib import Path

import pytest

from benchmarks import diagnose_validation as validation
from tempergat.study.diagnose.screening import Finding, Screening

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("finding", "pick"),
    [("shown", "temp_gated"), ("no difference", "gat"), ("too few runs", "gat")],
)
def test_only_what_was_shown_to_help_is_picked(finding: Finding, pick: str) -> None:
    screening = Screening("temp_gated", "gat", finding, (), (), 1.0)
    assert validation.picked(screening) == pick


def test_the_page_is_that_of_the_committed_runs() -> None:
    with (ROOT / validation.RESULTS).open(newline="") as file:
        rows = list(csv.DictReader(file))
    page = validation.page(rows)
    assert page == (ROOT / validation.DOCS).read_text(encoding="utf-8")
    assert "DBLP and IMDB are left out: they are heterogeneous" in page
    prose = [line for line in page.split("\n") if not line.startswith("|")]
    assert max(map(len, prose)) <= 88


def test_a_pick_that_beats_too_few_constants_is_not_recommended() -> None:
    def rows(pick: str) -> list[dict[str, str]]:
        below = {"gcn": 0.0, "gat": 3.0, "gatv2": 2.0, "temp_gated": 1.0}
        return [
            {
                "graph": f"csbm-{graph:02d}",
                "method": method,
                "finding": "no difference",
                "is_pick": str(method == pick),
                "is_first_in_screening": str(method == "gcn"),
                "below_best": str(below.get(method, 1.0) + graph / 100),
                "within_noise_of_best": str(below.get(method, 1.0) == 0.0),
            }
            for graph in range(14)
            for method in validation.SCREENED
        ]

    assert "The pick beats each of the three." in validation.page(rows("gcn"))
    assert "The pick beats only 1 of the three. So the command recommends" in (
        validation.page(rows("gatv2"))
    )
