"""A metric of which the lower score is better turns every table and sentence around."""

import math
from dataclasses import replace

import pytest

from tempergat.comparison.report.sentences import claims
from tempergat.comparison.report.tables import result_columns, result_table
from tempergat.comparison.results.across_graphs import across_graphs
from tempergat.comparison.results.from_runs import dataset_result
from tempergat.comparison.results.result import DatasetResult
from tempergat.training import METRICS, Metric
from tests.support.made_up_runs import METHODS, study

SCORES = {"gcn": 79.0, "gat": 80.0, "gated": 84.0}
ERROR = replace(METRICS["accuracy"], name="error", words="error", better="lower")


@pytest.fixture(autouse=True)
def _error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METRICS, "error", ERROR)


def results(against: str | dict[str, str]) -> tuple[DatasetResult, DatasetResult]:
    """Of accuracies, and of the errors 1 - accuracy in the same runs."""
    runs = study("cora", SCORES, range(8))
    errors = [
        replace(
            run,
            scores={r: replace(s, test=1.0 - s.test) for r, s in run.scores.items()},
        )
        for run in runs
    ]
    higher, lower = (
        dataset_result(of, METHODS, against, name, all_pairs=not against)
        for of, name in ((runs, "accuracy"), (errors, "error"))
    )
    return higher, lower


@pytest.mark.parametrize("against", ["gat", {}])
def test_errors_give_the_answer_that_accuracies_give(
    against: str | dict[str, str],
) -> None:
    higher, lower = results(against)
    assert lower.best is not None
    assert higher.best is not None
    assert lower.best.method == higher.best.method == "gated"
    assert (lower.best_set is None) == (against == "gat")
    if lower.best_set is not None and higher.best_set is not None:
        assert lower.best_set.members == higher.best_set.members
    for method, pair in higher.against_baseline.items():
        mirrored = lower.against_baseline[method]
        assert mirrored.verdict == pair.verdict
        assert mirrored.t_p_holm == pytest.approx(pair.t_p_holm)
        assert mirrored.difference == pytest.approx(-(pair.difference or 0.0))
        assert mirrored.low == pytest.approx(-(pair.high or 0.0))
        assert mirrored.effect_size == pytest.approx(-(pair.effect_size or 0.0))
    gated = lower["gated"].summary
    assert gated.mean == pytest.approx(16.0)
    assert gated.low is not None
    assert gated.high is not None
    assert gated.low < 16.0 < gated.high


def test_tables_mark_the_lowest_error_and_say_so() -> None:
    _, lower = results("gat")
    table = result_table(lower)
    rows = [row[0] for row in table.rows]
    assert table.marks[rows.index("gated"), 1] == "best"
    assert table.marks[rows.index("gat"), 1] == "second"
    assert "Bold is the lowest mean" in table.notes_on_marks[0]


def test_ranks_begin_with_the_lowest_error() -> None:
    ranks = across_graphs(dict(zip("ab", results("gat"), strict=True))).ranks
    assert ranks is not None
    assert next(iter(ranks.average)) == "gated"
    assert ranks.average["gated"] == 1.0


@pytest.mark.parametrize(("digits", "text"), [(0, "0"), (3, "-0.040")])
def test_differences_have_the_digits_of_scores(digits: int, text: str) -> None:
    METRICS["error"] = replace(
        ERROR,
        factor=1.0,
        unit=("", ""),
        points="",
        least=None,
        bounds=(0.0, math.inf),
        digits=digits,
    )
    _, lower = results({"gated": "gat"})
    column = result_columns(lower)["difference"]
    found = dict(zip(lower.methods, column.texts, strict=True))["gated"]
    assert found == text
    assert column.about == "mean of paired differences"
    lower = replace(lower, best_set=results({})[1].best_set)
    assert "gated beats gat by 0" in " ".join(claims(lower))


def test_a_denial_names_the_least_difference_of_the_metric() -> None:
    METRICS["error"] = replace(ERROR, factor=1.0, points="", least=0.9)
    runs = study("cora", {"mlp": 80.0, "gat": 80.0}, range(8))
    found = dataset_result(runs, ("mlp", "gat"), {}, "error", all_pairs=True)
    assert "No method beats mlp by 0.9 or more: the edges do" in " ".join(claims(found))


def test_a_metric_says_how_its_scores_are_written() -> None:
    plain = replace(ERROR, factor=1.0, unit=("", ""), points="", digits=3)
    assert (plain.with_unit(0.25), plain.axis, plain.in_unit) == (
        "0.250",
        "error",
        "error",
    )
    percent: Metric = METRICS["accuracy"]
    assert percent.with_unit(0.8135) == "81.35 %"
    assert percent.axis == "accuracy (%)"
