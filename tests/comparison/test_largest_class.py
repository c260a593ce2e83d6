"""What a constant answer scores stands in every table, outside of any ranking."""

import json

import pytest

from tempergat.comparison.comparison import Comparison
from tempergat.comparison.comparisons import Comparisons
from tempergat.comparison.report.formats import as_html, as_latex, as_markdown, as_text
from tempergat.comparison.results import DatasetResult, dataset_result
from tempergat.training import Run
from tests.support.made_up_runs import failed_run, run

# By true class; the first split has more nodes of class 0, both together of class 1.
FIRST, SECOND = ((6, 0), (3, 1)), ((0, 1), (2, 7))


def runs_of(name: str, scores: dict[str, float]) -> list[Run]:
    """Three seeds of every method, the constant answer being as good as the best."""
    return [
        run(
            method,
            seed,
            score,
            name,
            split=seed % 2,
            confusion=(FIRST, SECOND)[seed % 2],
        )
        for method, score in scores.items()
        for seed in range(3)
    ]


def result(name: str = "g", metric: str = "accuracy") -> DatasetResult:
    runs = runs_of(name, {"gat": 0.3, "gated": 0.2})
    return dataset_result(runs, ["gat", "gated"], "gat", metric)


def comparison(name: str) -> Comparison:
    runs = runs_of(name, {"gat": 0.3, "gated": 0.2})
    found = dataset_result(runs, ["gat", "gated"], "gat")
    return Comparison(found, runs, None, "default", "cpu", True, file_name=name)


def test_it_is_one_class_for_all_splits_and_every_seed_counts_once() -> None:
    found = result().largest_class
    assert found is not None
    assert found.label == 1
    assert found.scores == pytest.approx({0: 40.0, 1: 90.0})
    # Two of the three seeds are on the first split.
    assert found.mean == pytest.approx((40.0 + 90.0 + 40.0) / 3)


def test_on_one_split_it_has_a_score_for_every_seed_that_failed_too() -> None:
    runs = [run("gat", 0, confusion=FIRST), failed_run("gat", 1)]
    found = dataset_result(runs, ["gat"], {}).largest_class
    assert found is not None
    assert found.scores == pytest.approx({0: 60.0, 1: 60.0})


def test_it_is_measured_by_the_metric_of_the_table() -> None:
    found = result(metric="roc_auc").largest_class
    assert found is not None
    assert found.mean == 50.0


def test_every_table_has_its_row_last_and_its_note() -> None:
    found = comparison("g")
    for shown in (
        as_text(found.text_table),
        as_markdown(found.text_table),
        as_latex(found.text_table),
        as_html(found.text_table),
        found.to_csv(),
        found._repr_html_(),
    ):
        row = next(line for line in shown.splitlines() if "largest class" in line)
        assert "56.6" in row
        assert shown.index("gated") < shown.index("largest class")
    last = found.table[-1]
    assert (last["method"], last["verdict"], last["t_p_holm"]) == (
        "largest class",
        None,
        None,
    )
    facts = json.loads(found.to_json())["largest_class"]
    assert (facts["class"], facts["scores"]["1"]) == (1, 90.0)
    (note,) = [n for n in found.text_table.notes if n.startswith("largest class: ")]
    assert "never ranked or tested" in note


def test_it_is_never_ranked_tested_or_called_best() -> None:
    found = comparison("g")
    assert found.result.methods == ("gat", "gated")
    assert found.best == "gat"
    both = Comparisons((found, comparison("h")))
    assert both.across.ranks is not None
    assert list(both.across.ranks.average) == ["gat", "gated"]
    assert "largest class" not in as_text(both.summary)
    assert both.scores.footer == (("largest class", "56.67", "56.67"),)
    assert [row["rank"] for row in both.table[:3]] == [1.0, 2.0, None]


def test_runs_without_a_confusion_matrix_have_no_such_row() -> None:
    old = dataset_result([run("gat", seed) for seed in range(3)], ["gat"], {})
    assert old.largest_class is None
