"""The sentence says no more than the tests support."""

import re

import pytest

from tempergat.study.comparison import make_plan
from tempergat.study.comparison.verdict import best_by_test, best_method, verdict
from tempergat.study.report import result_table
from tempergat.study.results import dataset_result
from tests.support.made_up_runs import METHODS, failed_run, study

SEEDS = range(8)


@pytest.mark.parametrize(
    ("means", "std", "sentence"),
    [
        (
            {"gat": 70.0, "gated": 74.0},
            0.003,
            r"gated is best on cora, 74\.00 ± .*, and beats gat by 4\.0 points "
            r"\(p < 0\.001\)",
        ),
        (
            {"gat": 70.0, "gated": 70.1},
            0.01,
            r"no method stands out of the noise on cora; the highest mean is 70\.10 ± "
            r".*, of gated",
        ),
        (
            {"gat": 74.0, "gated": 70.0, "temp_only": 69.0},
            0.003,
            "gat is best on cora, .*; every method compared with it is worse",
        ),
        (
            {"gat": 74.0, "gated": 70.0, "temp_only": 69.0, "temp_gated": 74.01},
            0.003,
            "no method is shown to be better than its baseline on cora; gated and "
            "temp_only are worse than gat; the highest mean is 74.01 ± .*, of "
            "temp_gated",
        ),
    ],
)
def test_the_verdict_follows_the_tests(
    means: dict[str, float], std: float, sentence: str
) -> None:
    result = dataset_result(study("cora", means, SEEDS, std), METHODS, "gat")
    assert re.fullmatch(sentence, verdict(result)), verdict(result)


def test_a_variant_that_beats_its_backbone_is_named_below_a_higher_mean() -> None:
    means = {"gcn": 80.0, "gat": 70.0, "gated": 74.0}
    runs = study("cora", means, SEEDS, 0.003)
    result = dataset_result(runs, METHODS, {"gated": "gat"})
    assert best_method(result) == "gcn"
    assert verdict(result).startswith("on cora the highest mean is 80.00")
    assert "of gcn; gated beats gat by 4.0 points" in verdict(result)


def test_one_run_supports_no_verdict() -> None:
    runs = study("cora", {"gat": 70.0, "gated": 90.0}, range(1))
    result = dataset_result(runs, METHODS, "gat")
    assert verdict(result).startswith("too few runs to compare methods on cora")


def test_without_a_finished_run_there_is_no_best() -> None:
    result = dataset_result([failed_run("gat", 0)], METHODS, "gat")
    assert best_method(result) is None
    assert verdict(result) == "no run finished on cora"


def test_one_method_alone_is_compared_with_nothing() -> None:
    runs = study("cora", {"mlp": 70.0}, SEEDS)
    result = dataset_result(runs, ["mlp"], {})
    assert re.fullmatch(
        r"mlp scores 70\.00 ± .* on cora; there is no other method to compare it with",
        verdict(result),
    )


@pytest.mark.parametrize(
    ("means", "best"),
    [
        ({"gat": 70.0, "gated": 74.0}, "gated"),
        ({"gat": 74.0, "gated": 70.0}, "gat"),
        ({"gat": 70.0, "gated": 70.01}, None),
        ({"gat": 74.0, "gated": 70.0, "temp_gated": 74.01}, None),
    ],
)
def test_a_method_is_called_best_only_where_a_test_shows_it(
    means: dict[str, float], best: str | None
) -> None:
    result = dataset_result(study("cora", means, SEEDS, 0.003), METHODS, "gat")
    assert best_by_test(result) == best


@pytest.mark.parametrize(
    ("methods", "expected"),
    [
        (["gcn", "gat", "mlp"], "gat"),
        (["mlp", "gcn", "gatv2"], "gcn"),
        (["mlp", "temp_gated"], "temp_gated"),
        (["mlp"], None),
    ],
)
def test_mlp_is_compared_with_a_method_that_uses_the_graph(
    methods: list[str], expected: str | None
) -> None:
    plan = make_plan("demo", methods, runs=2)
    assert plan.against.get("mlp") == expected


def test_a_verdict_takes_mlp_into_account() -> None:
    means = {"gcn": 71.0, "gat": 70.0, "mlp": 80.0}
    against = make_plan("demo", list(means), runs=2).against
    runs = study("cora", means, SEEDS, 0.003)
    result = dataset_result(runs, list(means), against)
    assert verdict(result).startswith("mlp is best on cora, 80.00")
    assert "beats gat by 10.0 points" in verdict(result)


def test_the_table_says_what_mlp_is_compared_with() -> None:
    means = {"gcn": 71.0, "gat": 70.0, "gatv2": 70.5, "gated_v2": 70.5, "mlp": 80.0}
    against = make_plan("demo", list(means), runs=2).against
    runs = study("cora", means, SEEDS, 0.003)
    table = result_table(dataset_result(runs, list(means), against))
    assert "mlp is compared with gat." in table.notes
    assert not any(note.startswith("gated_v2 is") for note in table.notes)
