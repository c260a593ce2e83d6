"""The rule that `diagnose` does not recommend, and the page that says why."""

from pathlib import Path

import numpy as np
import pytest

from tempergat.study.diagnose.page import page_text, reproduce_diagnose
from tempergat.study.diagnose.validation import (
    VALIDATION_CSV,
    Finding,
    generate,
    generated_graphs,
    picked_method,
    read_validation,
    runs_needed,
    write_validation,
)
from tempergat.study.paper import PAPER_METHODS

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("means", "seeds", "pick", "finding"),
    [
        ({"gcn": 70.0, "gat": 71.0, "temp_gated": 76.0}, 8, "temp_gated", "shown"),
        ({"gcn": 60.0, "gat": 71.0, "temp_gated": 71.1}, 8, "gat", "no difference"),
        ({"gcn": 80.0, "gat": 70.0, "temp_gated": 70.0}, 8, "gcn", "shown"),
        ({"gcn": 60.0, "gat": 70.0, "temp_gated": 90.0}, 1, "gat", "too few runs"),
    ],
)
def test_only_what_was_shown_to_help_is_picked(
    means: dict[str, float], seeds: int, pick: str, finding: Finding
) -> None:
    draw = np.random.default_rng(1)
    scores: dict[str, dict[int, float | None]] = {
        method: dict(enumerate((mean + draw.normal(0, 0.8, seeds)).tolist()))
        for method, mean in means.items()
    }
    assert picked_method(scores) == (pick, finding)


def test_the_page_is_that_of_the_committed_runs(tmp_path: Path) -> None:
    page = reproduce_diagnose(ROOT / "results", tmp_path).page.read_text()
    assert page == (ROOT / "docs" / "diagnose.md").read_text(encoding="utf-8")
    assert "DBLP and IMDB are left out: they are heterogeneous" in page
    prose = [line for line in page.split("\n") if not line.startswith("|")]
    assert max(map(len, prose)) <= 88


def test_the_rows_of_one_graph_replace_only_its_own(tmp_path: Path) -> None:
    committed = ROOT / "results" / VALIDATION_CSV
    path = tmp_path / "validation.csv"
    path.write_bytes(committed.read_bytes())
    of_cora = [row for row in read_validation(committed) if row["graph"] == "cora"]
    write_validation(path, of_cora)
    assert path.read_bytes() == committed.read_bytes()
    write_validation(path, [of_cora[0] | {"below_best": "77"}])
    changed = path.read_text().splitlines()
    gone = set(committed.read_text().splitlines()) - set(changed)
    assert len(gone) == len(of_cora)
    assert all(line.startswith("cora,") for line in gone)


def test_the_generated_graphs_are_those_of_the_table() -> None:
    rows = {
        row["graph"]: row for row in read_validation(ROOT / "results" / VALIDATION_CSV)
    }
    for name, parameters in generated_graphs().items():
        assert {k: rows[name][k] for k in parameters} == {
            key: str(value) for key, value in parameters.items()
        }
    assert generate("csbm-07").data.num_nodes == generated_graphs()["csbm-07"]["n"]


@pytest.mark.parametrize("name", ["actor", "cora"])
def test_the_study_keeps_the_settings_of_its_published_rows(name: str) -> None:
    assert not any(config.residual for config, _ in runs_needed(name))


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
            for method in PAPER_METHODS
        ]

    assert "The pick beats each of the three." in page_text(rows("gcn"))
    assert "The pick beats only 1 of the three. So the command recommends" in (
        page_text(rows("gatv2"))
    )
