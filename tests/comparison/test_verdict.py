"""The sentences say no more than the tests support."""

import re
import textwrap
from dataclasses import replace

import numpy as np
import pytest

from tempergat.comparison.options import CompareOptions
from tempergat.comparison.plan import make_plan
from tempergat.comparison.report.answers import which_is_best
from tempergat.comparison.report.formats import as_text
from tempergat.comparison.report.sentences import denial, verdict
from tempergat.comparison.report.tables import result_table
from tempergat.comparison.results.from_runs import dataset_result
from tempergat.comparison.results.result import DatasetResult
from tempergat.stats import BestSet, Claim
from tests.support.made_up_runs import METHODS, failed_run, run, study

SEEDS = range(8)
PARAMETERS = {"mlp": 10, "gcn": 10, "gat": 20, "gatv2": 30}


def compared(
    means: dict[str, float], std: float = 0.003, baseline: str | None = None
) -> DatasetResult:
    """Made-up runs, compared as `tempergat compare` does."""
    against = baseline or make_plan(CompareOptions("demo", list(means), 2)).against
    runs = [
        replace(one, parameter_count=PARAMETERS.get(one.method, 50))
        for one in study("cora", means, SEEDS, std)
    ]
    return dataset_result(runs, list(means), against, all_pairs=baseline is None)


def members(found: DatasetResult) -> tuple[str, ...]:
    assert found.best_set is not None
    return found.best_set.members


@pytest.mark.parametrize(
    ("means", "std", "sentences"),
    [
        (
            {"gcn": 80.0, "gat": 70.0, "gatv2": 74.0},
            0.003,
            "gcn is the best of three on cora's test nodes (95 %); left out: gatv2, "
            "gat.",
        ),
        # Two methods without any relation have a tested answer.
        (
            {"gcn": 70.0, "gat": 74.0},
            0.003,
            "gat is the best of two on cora's test nodes (95 %); left out: gcn.",
        ),
        (
            {"gcn": 93.1, "gat": 70.0, "gatv2": 93.0},
            0.01,
            "The best of three on cora's test nodes is one of these two (95 %): gcn "
            "and gatv2; the simplest of them: gcn; left out: gat.",
        ),
        (
            {"gcn": 70.0, "gat": 71.0, "gatv2": 80.0, "gated_v2": 80.1, "gated": 80.2},
            0.01,
            "gated beats gat by 9.2 points (p < 0.001). The best of five on cora's "
            "test nodes is one of these three (95 %): gated, gated_v2 and gatv2; the "
            "simplest of them: gatv2; left out: gat, gcn.",
        ),
        (
            dict.fromkeys(("gcn", "gat", "gatv2", "gated", "temp_only"), 80.0),
            0.01,
            "No variant is shown to beat its backbone; about 20 seeds would tell. The "
            "best of five on cora's test nodes can be any of them (95 %): gcn, gat, "
            "gatv2, gated and temp_only; the simplest of them: gcn.",
        ),
        (
            {"gat": 80.0, "gated": 70.0, "temp_only": 84.0, "temp_gated": 83.0},
            0.003,
            "temp_only and temp_gated beat gat, by up to 4.0 points; gated is worse "
            "than gat. temp_only is the best of four on cora's test nodes (95 %); left "
            "out: temp_gated, gat, gated.",
        ),
    ],
)
def test_the_verdict_ends_with_the_methods_that_could_be_best(
    means: dict[str, float], std: float, sentences: str
) -> None:
    assert verdict(compared(means, std)) == sentences


@pytest.mark.parametrize("columns", [80, 100])
@pytest.mark.parametrize("count", range(1, 13))
def test_an_answer_fits_two_lines_and_tells_the_set_from_the_others(
    count: int, columns: int
) -> None:
    names = ("mlp", *METHODS)
    left_out = dict.fromkeys(names[count:], names[0])
    found = BestSet(names[:count], left_out, (), dict.fromkeys(names, 0.5), 10)
    answer = which_is_best(found, names[0], "on demo's test nodes")
    assert len(answer.headline.split()) <= 15
    text = answer.in_two_lines(columns)
    assert len(textwrap.wrap(text, columns)) <= 2
    assert text.startswith(answer.headline)
    said, _, simplest = text.partition("; the simplest of them: ")
    assert count == 1 or simplest.startswith("mlp")
    if columns == 100 and count < 12:
        # Without the table one knows which methods are in the set.
        every = names[count:] if "all but" in said else names[:count]
        assert set(every) <= set(re.findall(r"\w+", said))
    assert "told apart" not in text


def test_a_baseline_that_was_asked_for_takes_the_place_of_the_first_question() -> None:
    means = {"gat": 70.0, "gated": 74.0, "gcn": 60.0, "gatv2": 70.01}
    found = compared(means, baseline="gat")
    assert verdict(found) == (
        "gated is shown to beat gat on cora's test nodes; worse than gat: gcn."
    )
    assert (found.pairs, found.best_set, found.simplest) == ((), None, None)
    same = compared({"gat": 70.0, "gcn": 70.1}, 0.01, baseline="gat")
    assert verdict(same) == "No method is shown to beat gat on cora's test nodes."
    more = compared({"gat": 70.0, "gcn": 75.0, "gated": 77.0}, baseline="gat")
    assert verdict(more).startswith("Two of two are shown to beat gat on cora's test ")


def test_where_no_method_beats_guessing_that_comes_first() -> None:
    def with_confusion(means: dict[str, float], seeds: range) -> str:
        runs = [
            replace(one, confusion=((55, 0), (45, 0)))
            for one in study("cora", means, seeds, 0.01)
        ]
        return verdict(dataset_result(runs, list(means), {}, all_pairs=True))

    at_chance = with_confusion({"gcn": 54.0, "gat": 55.5}, SEEDS)
    assert at_chance.startswith("No method is shown to beat guessing (55.00)")
    below = with_confusion({"gcn": 52.0, "gat": 51.0}, SEEDS)
    assert below.startswith("No method beats guessing (55.00) by a point or more. ")
    assert "guessing" not in with_confusion({"gcn": 54.0, "gat": 58.0}, SEEDS)


def test_that_edges_do_not_help_is_said_only_where_a_point_is_ruled_out() -> None:
    useless = (
        "No method beats mlp by a point or more: the edges do not help by as much."
    )
    means = {"mlp": 80.0, "gcn": 71.0, "gat": 79.0}
    assert verdict(compared(means, 0.01)).startswith(useless)
    near = verdict(compared(means | {"gat": 80.1}, 0.01))
    assert near.startswith(
        "No method is shown to beat mlp, so the edges are not shown to help; about "
    )
    assert "edges" not in verdict(compared(means | {"gcn": 84.0}))


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        (None, []),
        (Claim("shown", None, "", None), []),
        (
            Claim("at most a point", None, "", None),
            ["No variant beats its backbone by a point or more."],
        ),
        (
            Claim("not shown", None, "", 20),
            [
                "No variant is shown to beat its backbone; about 20 seeds would tell.",
            ],
        ),
        (
            Claim("not shown", None, "too few pairs", None),
            [
                "No variant is shown to beat its backbone; there are too few seeds to "
                "tell."
            ],
        ),
        (
            Claim("not shown", None, "no spread", None),
            [
                "No variant is shown to beat its backbone; all seeds have the same "
                "difference, which no test can judge."
            ],
        ),
    ],
)
def test_a_denial_says_what_was_shown_and_why_seeds_cannot_tell(
    claim: Claim | None, said: list[str]
) -> None:
    assert denial(claim, "seeds", "its backbone", who="variant") == said


def test_more_seeds_are_offered_where_they_make_the_set_smaller() -> None:
    means = {"gcn": 80.0, "gat": 80.3, "gatv2": 80.6, "mlp": 70.0}
    found = replace(compared(means, 0.01), fewer=(40, 1.2))
    assert (
        "With about 40 seeds about one method could still be the best. The best of "
        in verdict(found)
    )
    assert "about" not in verdict(replace(found, fewer=None))


def test_the_simplest_is_not_named_where_parameters_were_not_counted() -> None:
    runs = study("cora", {"gcn": 80.0, "gat": 80.1}, SEEDS)
    found = dataset_result(runs, ["gcn", "gat"], {}, all_pairs=True)
    assert (members(found), found.simplest) == (("gat", "gcn"), None)
    assert verdict(found) == (
        "The best of two on cora's test nodes can be either of them (95 %): gat and "
        "gcn."
    )


def test_one_run_supports_no_verdict() -> None:
    runs = [run("gat", 0, 0.7), run("gcn", 0, 0.9)]
    found = dataset_result(runs, ["gat", "gcn"], {}, all_pairs=True)
    assert verdict(found) == (
        "Too few runs to compare methods on cora; gcn scores highest (90.00)."
    )
    assert found.best_set is None
    against_one = dataset_result(runs, ["gat", "gcn"], "gat")
    assert verdict(against_one) == verdict(found)


def test_without_a_finished_run_there_is_no_best() -> None:
    result = dataset_result([failed_run("gat", 0)], ["gat"], {})
    assert result.best is None
    assert verdict(result) == "No run finished on cora."


def test_one_method_alone_is_compared_with_nothing() -> None:
    assert re.fullmatch(
        r"mlp scores 70\.00 ± .* on cora; there is nothing to compare it with\.",
        verdict(compared({"mlp": 70.0})),
    )


def test_a_method_that_never_finished_is_not_called_worse() -> None:
    runs = study("cora", {"gcn": 80.0, "gat": 70.0}, SEEDS, 0.003)
    runs += [failed_run("gatv2", seed) for seed in SEEDS]
    found = dataset_result(runs, ["gcn", "gat", "gatv2"], {}, all_pairs=True)
    assert members(found) == ("gcn",)
    assert "gatv2" not in verdict(found)


def test_a_lucky_run_is_not_the_highest_and_makes_nothing_untestable() -> None:
    runs = study("cora", {"gcn": 80.0, "gat": 80.1, "gatv2": 70.0}, SEEDS, 0.01)
    runs = [replace(one, parameter_count=PARAMETERS[one.method]) for one in runs]
    # One finished run each, above and below; both are simpler than the others.
    for method, score in (("mlp", 0.99), ("Bad", 0.10)):
        runs += [replace(run(method, 0, score), parameter_count=1)]
        runs += [failed_run(method, seed) for seed in SEEDS[1:]]
    methods = ["gcn", "gat", "gatv2", "mlp", "Bad"]
    found = dataset_result(runs, methods, {}, all_pairs=True)
    assert found.best is not None
    assert (found.best.method, members(found)) == ("gat", ("gat", "gcn"))
    assert verdict(found).endswith(
        "mlp and Bad have too few runs to be compared. The best of three on cora's "
        "test nodes is one of these two (95 %): gat and gcn; the simplest of them: "
        "gcn; left out: gatv2."
    )
    table = result_table(found)
    column = table.columns.index("could be best")
    standing = [row[column] for row in table.rows]
    assert standing == ["yes", "yes", "left out", "too few runs", "too few runs"]


def test_only_variants_are_compared_with_a_backbone() -> None:
    plan = make_plan(
        CompareOptions(
            "demo", {"gat": None, "mlp": None, "gated": None, "Mine": dict}, 2
        ),
    )
    assert plan.against == {"gated": "gat"}
    means = {"gat": 70.0, "gated": 75.0, "mlp": 80.0, "Mine": 60.0}
    runs = study("cora", means, SEEDS)
    table = result_table(
        dataset_result(runs, list(means), plan.against, all_pairs=True)
    )
    first = table.columns.index("could be best")
    expected = ["left out", "left out", "best", "left out"]
    assert [row[first] for row in table.rows] == expected
    assert [row[-1] for row in table.rows] == ["baseline", "better", "-", "-"]
    without = dataset_result(runs, ["gat", "mlp", "Mine"], {}, all_pairs=True)
    assert "second question" not in " ".join(result_table(without).notes)


def test_the_table_has_the_first_question_before_the_second() -> None:
    table = result_table(compared({"gcn": 80.0, "gat": 70.0, "gated": 80.01}, 0.003))
    first = table.columns.index("could be best")
    assert table.columns[first + 1] == "against gat"
    assert [row[first] for row in table.rows] == ["yes", "left out", "yes"]
    assert [row[-1] for row in table.rows] == ["-", "baseline", "better"]


def test_methods_without_a_baseline_are_compared_with_the_highest_in_the_table() -> (
    None
):
    text = as_text(result_table(compared({"gcn": 80.0, "gat": 70.0})))
    assert "against gcn" in text
    assert re.search(r"gat +70.00 .* left out +-10.00  <0.001 ", text)
    assert re.search(r"gcn +80.00 .* best +- ", text)


def test_a_method_that_fails_on_hard_seeds_is_not_ahead_by_it() -> None:
    draw = np.random.default_rng(0)
    runs = []
    for seed in range(10):
        score = (0.60 if seed < 5 else 0.82) + draw.normal(0.0, 0.003)
        runs.append(run("gat", seed, score))
        is_hard = seed < 5
        runs.append(failed_run("gatv2", seed) if is_hard else run("gatv2", seed, 0.80))
    found = dataset_result(runs, ["gat", "gatv2"], {}, all_pairs=True)
    assert found.best is not None
    assert (found.best.method, members(found)) == ("gat", ("gat",))
    assert found.compared_on == (5, 6, 7, 8, 9)
    (pair,) = found.pairs
    means = {m.method: m.summary.mean or 0.0 for m in found.results}
    assert (pair.baseline, pair.verdict) == ("gat", "worse")
    assert pair.difference == pytest.approx(means["gatv2"] - means["gat"])
    assert "gatv2: 5 of 10 runs failed" in " ".join(result_table(found).notes)


@pytest.mark.parametrize("seed", range(20))
def test_ranking_set_pairs_and_means_agree_in_drawn_tables_with_failures(
    seed: int,
) -> None:
    draw = np.random.default_rng(seed)
    methods = ["gcn", "gat", "gatv2", "gated", "mlp"][: draw.integers(2, 6)]
    hard = draw.normal(0.0, 0.05, 8)
    runs = []
    for method in methods:
        for number, level in enumerate(hard):
            fails = draw.random() < 0.3 - 3 * level
            score = 0.7 + level + draw.normal(0.0, 0.01)
            runs += [(failed_run if fails else run)(method, number, test=score)]
    runs = [replace(r, scores={}) if r.status == "failed" else r for r in runs]
    found = dataset_result(runs, methods, {}, all_pairs=True)
    means = {r.method: r.summary.mean or 0.0 for r in found.results}
    for pair in found.pairs:
        if pair.difference is not None and pair.pairs > 1:
            gap = means[pair.method] - means[pair.baseline]
            assert pair.difference == pytest.approx(gap)
            assert pair.pairs == len(found.compared_on)
    if found.best_set is not None and found.best is not None:
        tested = [m for m in means if m not in found.best_set.untested]
        assert found.best.method == max(
            (m for m in tested if m in found.best_set.p), key=means.__getitem__
        )
