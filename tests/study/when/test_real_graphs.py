"""What the page says of real graphs, from rows that are made up."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from tempergat.study.when.plan import RealGraph, load_plan
from tempergat.study.when.report.advice import advice
from tempergat.study.when.report.analysis import Across, measured
from tempergat.study.when.report.answer import answer
from tempergat.study.when.report.failures import find_untrained
from tempergat.study.when.report.findings import REAL, Findings, find
from tempergat.study.when.report.page import page_text
from tempergat.study.when.report.rule import rule_test
from tempergat.study.when.report.threshold import side
from tempergat.study.when.runs.rows import CSV_OF_STAGE, Key, Row, read_rows

ROOT = Path(__file__).resolve().parents[3]
PLAN = load_plan(ROOT / "results")

Gain = Callable[[str, RealGraph], float]


def rows_of(gain: Gain) -> list[Row]:
    """Rows of every real graph where an arm's gain over plain depends on the graph."""
    draw, rows = np.random.default_rng(6), []
    for graph in PLAN.real.graphs:
        for backbone in PLAN.backbones:
            for arm in PLAN.arms:
                for seed in PLAN.real.seeds:
                    test = 60.0 + draw.normal() + gain(arm, graph)
                    key = Key(graph.name, backbone, arm, 8, 0, seed)
                    rows.append(Row(key, test, test, 9, 7, (), (), "cpu", 0.1))
    return rows


def by_threshold(arm: str, graph: RealGraph) -> float:
    """A residual gains 9 points below the threshold, and costs 3 above it."""
    if arm not in ("residual", "post_gate_residual"):
        return 0.0
    return 9.0 if graph.adjusted_homophily < PLAN.rule.threshold else -3.0


def failing(rows: Sequence[Row], graph: str, arm: str, seeds: range) -> list[Row]:
    """The rows, where some runs of gatv2 end 50 points lower."""

    def changed(row: Row) -> Row:
        key = row.key
        if (key.graph, key.backbone, key.arm) != (graph, "gatv2", arm):
            return row
        if key.seed not in seeds or row.val is None:
            return row
        low = row.val - 50.0
        return Row(key, low, low, 9, 7, (), (), "cpu", 0.1)

    return [changed(row) for row in rows]


@pytest.fixture(scope="module")
def divided() -> Findings:
    rows = rows_of(by_threshold)
    return find(PLAN, [], failing(rows, "cora", "post_gate", range(2000, 2003)))


def test_gains_are_compared_on_both_sides_of_the_threshold(divided: Findings) -> None:
    below = side(divided, "gat", "residual", is_below=True)
    above = side(divided, "gat", "residual", is_below=False)
    assert below is not None
    assert above is not None
    assert below.mean == pytest.approx(9.0, abs=0.6)
    assert (below.better, below.worse, below.gaining) == (9, 0, 7)
    assert (len(below.graphs), len(below.families)) == (9, 7)
    assert above.mean == pytest.approx(-3.0, abs=0.6)
    assert (above.better, above.worse, above.gaining) == (0, 9, 0)
    # The plan has no test of this pair.
    untested = side(divided, "gat", "post_gate", "constant_gate", is_below=True)
    assert untested is not None
    assert untested.better is None
    text = page_text(divided)
    flowing = " ".join(text.split())
    assert "## Real graphs below and above adjusted homophily 0.33" in text
    assert "| below: 9 graphs of 7 families |" in text
    assert "| 7 of 7 | 9, 0 of 9 |" in text
    assert "below the threshold: 7 of 7 with gat and 7 of 7 with gatv2." in flowing


def test_a_gain_on_some_graphs_and_a_cost_on_others_depends_on_the_graph(
    divided: Findings,
) -> None:
    test = divided.test(REAL, "gatv2", "residual")
    assert test is not None
    assert (test.graphs, test.tested, test.better, test.worse) == (14, 18, 9, 9)
    assert "| **depends on the graph**: +" in page_text(divided)
    assert "- **depends on the graph**: across graphs" in page_text(divided)
    # A word that no cell has is not explained.
    assert "- **on some graphs**" not in page_text(divided)


def test_runs_that_fail_to_train_are_named_and_counted(divided: Findings) -> None:
    found = divided.untrained["real"]
    assert found.count("post_gate") == 3
    assert found.count("residual", "post_gate_residual") == 0
    assert found.seeds(("cora", "gatv2", "post_gate")) == {2000, 2001, 2002}
    assert found.cases == [("cora", "gatv2", "post_gate")]
    text = " ".join(page_text(divided).split())
    assert "By arm: post_gate 3 of 360, every other arm none." in text
    assert "3 of the 3 have the larger learning rate" in text
    assert "| cora | gatv2 | post_gate | 3 of 10 | -1" in text
    assert "A dagger: some of the 10 runs failed to train." in text
    often = answer(divided)[1]
    assert "With a gate and no residual, some runs fail to train." in often.sentence
    assert "3 of 720 with the gate on the output and no residual" in often.evidence
    assert "none of 720 with a residual" in often.evidence
    assert "on cora (gatv2), which the tests do not count as worse" in often.evidence


def test_where_all_runs_train_none_is_said_to_fail() -> None:
    findings = find(PLAN, [], rows_of(lambda arm, _: 3.0 * (arm == "residual")))
    text = " ".join(page_text(findings).split())
    assert "No run on a real graph counts." in text
    assert "fail to train." not in answer(findings)[1].sentence
    assert "A dagger" not in text
    assert "†" not in text
    test = findings.test(REAL, "gatv2", "residual")
    assert test is not None
    assert test.is_better
    assert "## Real graphs one by one" in text
    assert "| texas_4_classes | -0.25 | " in text
    assert "The authors of tolokers report ROC AUC" in text


def test_noise_within_twenty_points_is_no_failure() -> None:
    def run(seed: int, val: float | None) -> Row:
        key = Key("texas_4_classes", "gat", "plain", 0, seed, seed)
        return Row(key, val, val, 9, 7, (), (), "cpu", 0.1)

    # The best run does not count, only the median.
    scores = [95.0, *[80.0] * 7, 61.0, 59.9]
    found = find_untrained([run(k, score) for k, score in enumerate(scores)])
    assert [row.key.seed for row in found.rows] == [9]
    assert found.largest_kept == pytest.approx(19.0)
    assert found.smallest_failed == pytest.approx(20.1)
    # A run without a score ended with an error, which is counted elsewhere.
    assert find_untrained([run(0, None)]).runs == {}


def test_one_backbone_is_named_where_only_it_gains() -> None:
    def result(p: float, better: int, worse: int, mean: float = 5.0) -> Across:
        contrast = PLAN.contrasts[0]
        return Across(
            contrast, 14, mean, 0.0, 9.0, p, p, False, better, worse, tested=18
        )

    def words(*tests: Across) -> str:
        return advice(PLAN.backbones, tests)

    gains, unclear = result(0.01, 9, 0), result(0.3, 9, 2)
    assert words(gains, gains) == "yes"
    assert words(gains, unclear) == "with gat only"
    assert words(unclear, gains) == "with gatv2 only"
    assert words(unclear, unclear) == "depends on the graph"
    assert words(result(0.3, 9, 0), result(0.3, 8, 0)) == "on some graphs"
    costs = result(0.01, 1, 9, mean=-5.0)
    assert words(costs, costs) == "no"
    assert words(costs, unclear) == "not shown to help"


def test_diagnose_recommends_nothing_while_the_rule_is_not_supported() -> None:
    rows = read_rows(ROOT / "results" / CSV_OF_STAGE["real"])
    families = {graph.name: graph.family for graph in PLAN.real.graphs}
    runs = len(PLAN.real.seeds)
    found = rule_test(PLAN, measured(PLAN, rows, "gatv2", runs, families))
    assert found is not None
    assert found.families == 14
    assert not found.is_supported
    assert found.is_equivalent
    page = " ".join((ROOT / "docs" / "diagnose.md").read_text().split())
    assert "is not shown to be better than a residual on every graph" in page
