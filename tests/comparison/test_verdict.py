"""The sentences say no more than the tests support."""

import re
from dataclasses import replace

import numpy as np
import pytest

from tempergat.comparison.plan import make_plan
from tempergat.comparison.report.formats import as_text
from tempergat.comparison.report.sentences import verdict
from tempergat.comparison.report.tables import result_table
from tempergat.comparison.results.from_runs import dataset_result
from tempergat.comparison.results.result import DatasetResult
from tests.support.made_up_runs import failed_run, run, study

SEEDS = range(8)
PARAMETERS = {"mlp": 10, "gcn": 10, "gat": 20, "gatv2": 30}


def compared(
    means: dict[str, float], std: float = 0.003, baseline: str | None = None
) -> DatasetResult:
    """Made-up runs, compared as `tempergat compare` does."""
    against = baseline or make_plan("demo", list(means), runs=2).against
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
            r"gcn is best on cora \(80\.00 ± .*\); left out: gatv2 and gat\.",
        ),
        # Two methods without any relation have a tested answer.
        (
            {"gcn": 70.0, "gat": 74.0},
            0.003,
            r"gat is best on cora \(74\.00 ± .*\); left out: gcn\.",
        ),
        (
            {"gcn": 93.1, "gat": 70.0, "gatv2": 93.0},
            0.01,
            r"The best of 3 methods on cora is one of these 2 \(95 %\): gcn \(93\.10 ± "
            r".*\) and gatv2; the simplest is gcn; left out: gat\.",
        ),
        (
            {"gcn": 70.0, "gat": 71.0, "gatv2": 80.0, "gated_v2": 80.1, "gated": 80.2},
            0.01,
            r"The best of 5 methods on cora is one of these 3 \(95 %\): gated \(80\.20 "
            r"± .*\), gated_v2 and gatv2; the simplest is gatv2; left out: gat and "
            r"gcn\. gated beats gat by 9\.2 points \(p < 0\.001\)\.",
        ),
        (
            dict.fromkeys(("gcn", "gat", "gatv2", "gated", "temp_only"), 80.0),
            0.01,
            r"The best of 5 methods on cora is one of these 5 \(95 %\): gcn \(80\.00 ± "
            r".*\), gat, gatv2, gated and temp_only; the simplest is gcn\. No variant "
            r"is shown to beat its backbone\.",
        ),
        (
            {"gat": 80.0, "gated": 70.0, "temp_only": 84.0, "temp_gated": 83.0},
            0.003,
            r"temp_only is best on cora .*; left out: temp_gated, gat and gated\. "
            r"temp_only and temp_gated beat gat, by up to 4\.0 points; gated is worse "
            r"than gat\.",
        ),
    ],
)
def test_the_verdict_says_which_methods_are_best_then_how_variants_do(
    means: dict[str, float], std: float, sentences: str
) -> None:
    found = verdict(compared(means, std))
    assert re.fullmatch(sentences, found), found


def test_a_baseline_that_was_asked_for_takes_the_place_of_the_first_question() -> None:
    means = {"gat": 70.0, "gated": 74.0, "gcn": 60.0, "gatv2": 70.01}
    found = compared(means, baseline="gat")
    assert verdict(found).startswith(
        "On cora gated beats gat by 4.0 points (p < 0.001); gcn is worse than gat; "
        "gated scores highest (74.00 ± "
    )
    assert (found.pairs, found.best_set, found.simplest) == ((), None, None)
    same = compared({"gat": 70.0, "gcn": 70.1}, 0.01, baseline="gat")
    assert "On cora no method is shown to differ from gat; gcn" in verdict(same)


def test_where_no_method_beats_guessing_that_comes_first() -> None:
    def with_confusion(means: dict[str, float], seeds: range) -> str:
        runs = [
            replace(one, confusion=((55, 0), (45, 0)))
            for one in study("cora", means, seeds, 0.01)
        ]
        return verdict(dataset_result(runs, list(means), {}, all_pairs=True))

    at_chance = with_confusion({"gcn": 54.0, "gat": 55.5}, SEEDS)
    assert at_chance.startswith("No method is shown to beat guessing (55.00). ")
    below = with_confusion({"gcn": 52.0, "gat": 51.0}, SEEDS)
    assert below.startswith("No method beats guessing (55.00) by a point or more. ")
    assert "guessing" not in with_confusion({"gcn": 54.0, "gat": 58.0}, SEEDS)


def test_where_no_method_beats_mlp_the_edges_do_not_help() -> None:
    useless = "No method beats mlp by a point or more: the edges do not help here"
    means = {"mlp": 80.0, "gcn": 71.0, "gat": 79.0}
    assert f". {useless}." in verdict(compared(means, 0.01))
    assert "mlp is best on cora" in verdict(compared(means | {"gat": 70.0}))
    near = verdict(compared(means | {"gat": 80.1}, 0.01))
    assert ". No method is shown to beat mlp." in near
    assert "mlp:" not in verdict(compared(means | {"gcn": 84.0}))


def test_the_simplest_is_not_named_where_parameters_were_not_counted() -> None:
    runs = study("cora", {"gcn": 80.0, "gat": 80.1}, SEEDS)
    found = dataset_result(runs, ["gcn", "gat"], {}, all_pairs=True)
    assert (members(found), found.simplest) == (("gat", "gcn"), None)
    assert "which is simplest is not known" in verdict(found)


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
        r"mlp scores 70\.00 ± .* on cora; there is no other method with a finished run "
        r"to compare it with\.",
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
    assert re.fullmatch(
        r"The best of 3 methods on cora is one of these 2 \(95 %\): gat \(80\.10 ± .*\)"
        r" and gcn; the simplest is gcn; left out: gatv2\. mlp and Bad have too few "
        r"runs to be compared\.",
        verdict(found),
    )
    last = [row[-1] for row in result_table(found).rows]
    assert last == ["within noise", "highest", "worse", "too few runs", "too few runs"]


def test_few_pairs_do_not_deny_that_a_variant_beats_its_backbone() -> None:
    means = {"gat": 80.0, "gated": 80.1}
    runs = study("cora", means, range(4), 0.01)
    found = dataset_result(runs, list(means), {"gated": "gat"}, all_pairs=True)
    assert ". No variant is shown to beat its backbone." in verdict(found)


def test_only_variants_are_compared_with_a_backbone() -> None:
    plan = make_plan("demo", {"gat": None, "mlp": None, "gated": None, "Mine": dict}, 2)
    assert plan.against == {"gated": "gat"}
    means = {"gat": 70.0, "gated": 75.0, "mlp": 80.0, "Mine": 60.0}
    runs = study("cora", means, SEEDS)
    table = result_table(
        dataset_result(runs, list(means), plan.against, all_pairs=True)
    )
    first = table.columns.index("against highest")
    assert [row[first] for row in table.rows] == ["worse", "worse", "highest", "worse"]
    assert [row[-1] for row in table.rows] == ["baseline", "better", "-", "-"]
    without = dataset_result(runs, ["gat", "mlp", "Mine"], {}, all_pairs=True)
    assert "second question" not in " ".join(result_table(without).notes)


def test_the_table_has_the_first_question_before_the_second() -> None:
    table = result_table(compared({"gcn": 80.0, "gat": 70.0, "gated": 80.01}, 0.003))
    first = table.columns.index("against highest")
    assert table.columns[first + 1] == "against gat"
    assert [row[first] for row in table.rows] == ["within noise", "worse", "highest"]
    assert [row[-1] for row in table.rows] == ["-", "baseline", "better"]


def test_methods_without_a_baseline_are_compared_with_the_highest_in_the_table() -> (
    None
):
    text = as_text(result_table(compared({"gcn": 80.0, "gat": 70.0})))
    assert "against gcn" in text
    assert re.search(r"gat +70.00 .* -10.00  <0.001 .* worse\n", text)
    assert re.search(r"gcn +80.00 .* highest\n", text)


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
