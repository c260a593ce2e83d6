"""Ranks against scipy and against examples worked by hand."""

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from tempergat.stats.ranks import RankTable, average_ranks, critical_difference


@pytest.mark.parametrize(("datasets", "expected"), [(11, 4.55), (6, 6.16), (5, 6.75)])
def test_critical_difference_of_the_eleven_methods(
    datasets: int, expected: float
) -> None:
    assert critical_difference(11, datasets) == pytest.approx(expected, abs=0.005)


def test_critical_difference_of_demsars_example() -> None:
    # Demsar (2006): four methods, fourteen datasets, q = 2.569.
    expected = 2.569 * math.sqrt(4 * 5 / (6 * 14))
    assert critical_difference(4, 14) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(("methods", "datasets"), [(11, 1), (1, 6), (11, 0)])
def test_ranks_need_two_datasets_and_two_methods(methods: int, datasets: int) -> None:
    with pytest.raises(ValueError, match="two methods and two datasets"):
        critical_difference(methods, datasets)


def ranked() -> RankTable:
    return average_ranks(
        {
            "a": {"x": 80.0, "y": 90.0, "z": 70.0},
            "b": {"x": 60.0, "y": 60.0, "z": 50.0},
            "c": {"x": 1.0, "y": 3.0, "z": 2.0},
        }
    )


def test_average_ranks_worked_by_hand() -> None:
    table = ranked()
    assert table.ranks["a"] == {"x": 2, "y": 1, "z": 3}
    assert table.ranks["b"] == {"x": 1.5, "y": 1.5, "z": 3}
    assert table.average == pytest.approx(
        {"y": (1 + 1.5 + 1) / 3, "x": (2 + 1.5 + 3) / 3, "z": (3 + 3 + 2) / 3}
    )
    assert list(table.average) == ["y", "x", "z"]
    assert table.datasets == ("a", "b", "c")


def test_friedman_agrees_with_scipy_on_the_scores() -> None:
    expected = scipy_stats.friedmanchisquare(
        [80.0, 60.0, 1.0], [90.0, 60.0, 3.0], [70.0, 50.0, 2.0]
    )
    assert ranked().friedman == pytest.approx(expected.statistic)
    assert ranked().friedman_p == pytest.approx(expected.pvalue)


def test_scores_equal_but_for_the_last_bit_share_a_rank() -> None:
    table = average_ranks({"a": {"x": 0.1 + 0.2, "y": 0.3}, "b": {"x": 1.0, "y": 2.0}})
    assert table.ranks["a"] == {"x": 1.5, "y": 1.5}


def test_methods_that_tie_everywhere_are_ranked_without_friedman() -> None:
    rows = {name: dict.fromkeys("xyz", 1.0) for name in "ab"}
    table = average_ranks(rows)
    assert table.friedman is None
    assert set(table.average.values()) == {2.0}


def test_a_missing_method_is_named() -> None:
    with pytest.raises(ValueError, match=r"b ranks other methods.*z"):
        average_ranks({"a": {"x": 1.0, "z": 2.0}, "b": {"x": 1.0}})


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_a_score_that_is_not_a_number_is_not_ranked(wrong: float) -> None:
    scores = {"cora": {"gat": 1.0, "gcn": 2.0}, "pubmed": {"gat": wrong, "gcn": 1.0}}
    with pytest.raises(ValueError, match=f"score of gat on pubmed is {wrong}"):
        average_ranks(scores)


def test_two_methods_are_told_apart_by_the_exact_sign_test() -> None:
    for graphs in range(2, 30):
        for wins in range(graphs // 2, graphs + 1):
            rows = {str(n): {"a": 2.0 * (n < wins), "b": 1.0} for n in range(graphs)}
            table = average_ranks(rows | {"tie": {"a": 1.0, "b": 1.0}})
            ahead = abs(table.average["a"] - table.average["b"])
            p = scipy_stats.binomtest(wins, graphs).pvalue
            assert (ahead > table.critical_difference) == (p < 0.05), (graphs, wins)
            assert table.test == "exact sign test"


def test_equal_methods_are_seldom_told_apart_by_their_ranks() -> None:
    draw = np.random.default_rng(0)
    for graphs in (4, 5, 6, 8, 11):
        first = draw.integers(0, 2, (2_000, graphs)).mean(axis=1)
        limit = critical_difference(2, graphs)
        assert (np.abs(2 * first - 1) > limit).mean() <= 0.05
