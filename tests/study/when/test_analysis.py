"""The analysis of rows that are made up, with known answers."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml

from tempergat.study.when.graphs import GeneratedGraph, grid
from tempergat.study.when.plan import Contrast, WhenPlan, load_plan
from tempergat.study.when.report.across_graphs import (
    rank_sections,
    regression_section,
)
from tempergat.study.when.report.advice import use_section
from tempergat.study.when.report.analysis import (
    Measured,
    Scores,
    across,
    gains_together,
    measured,
    ranks,
    regression,
    within,
)
from tempergat.study.when.report.answer import answer
from tempergat.study.when.report.findings import (
    ALL,
    HETEROPHILIC,
    HOMOPHILIC,
    find,
    own_path_claim,
    temperature_claim,
)
from tempergat.study.when.report.page import reproduce_when
from tempergat.study.when.report.rule import rule_test
from tempergat.study.when.runs.rows import CSV_OF_STAGE, Key, Row, write_rows

ROOT = Path(__file__).resolve().parents[3]
FULL = load_plan(ROOT / "results")


def smaller_plan() -> WhenPlan:
    """Ten heterophilic graphs and four others, because each test takes its time."""
    values = FULL.model_dump()
    low = [0.0, 0.02, 0.05, 0.08, 0.12, 0.15, 0.18, 0.2, 0.22]
    values["generated"]["levels"] = {"homophily": [*low, 0.4, 0.6, 0.8]}
    values["generated"]["seeds"] = range(2000, 2005)
    values["contrasts"] = [
        contrast
        for contrast in values["contrasts"]
        if contrast["arm"] not in ("gate_first", "temperature_post_gate", "fixed_norm")
        and contrast["against"] != "neighbour_gate"
    ]
    return WhenPlan.model_validate(values)


PLAN = smaller_plan()
RESIDUAL = Contrast(arm="residual", against="plain", asks="")

Gain = Callable[[str, GeneratedGraph], float]


def rows_of(gain: Gain, plan: WhenPlan = PLAN) -> list[Row]:
    """Rows where an arm's gain over plain depends on the graph, with a little noise."""
    draw = np.random.default_rng(5)
    found = []
    for graph in grid(plan.generated).values():
        for backbone in plan.backbones:
            for seed in plan.generated.seeds:
                start = 50.0 + draw.normal()
                for arm in plan.arms:
                    test = start + gain(arm, graph) + 0.2 * draw.normal()
                    key = Key(graph.name, backbone, arm, -1, 0, seed)
                    found.append(Row(key, test, test, 9, 7, (), (), "cpu", 0.1))
    return found


def own_path(arm: str, graph: GeneratedGraph) -> float:
    """The gate has a third of the residual's gain, under heterophily alone."""
    if graph.homophily > 0.25:
        return 0.0
    gains = {"residual": 9.0, "post_gate_residual": 9.0, "post_gate": 3.0}
    gains["temperature_post_gate"] = 3.0
    return gains.get(arm, 0.0)


def independent_gate(arm: str, graph: GeneratedGraph) -> float:
    """The gate adds to the residual, and a gate of the neighbours does as well."""
    gains = {"residual": 2.0, "post_gate": 6.0, "neighbour_gate": 6.0}
    gains |= {"post_gate_residual": 8.0, "temperature": 3.0}
    return gains.get(arm, 0.0)


def test_a_gate_that_is_a_path_is_found_to_be_one() -> None:
    findings = find(PLAN, rows_of(own_path), [])
    assert own_path_claim(findings).is_supported
    test = findings.test(HETEROPHILIC, "gat", "residual")
    assert test is not None
    assert test.mean == pytest.approx(9.0, abs=0.1)
    assert (test.graphs, test.better, test.worse) == (10, 10, 0)
    homophilic = findings.test(HOMOPHILIC, "gat", "residual")
    assert homophilic is not None
    assert homophilic.verdict == "equivalent"
    rarely, often, temperature = answer(findings)
    assert rarely.sentence == (
        "Where neighbours rarely share a class, a residual helps, and a gate on top of "
        "it adds nothing."
    )
    assert "a residual gains +9.0 and +9.0 points" in rarely.evidence
    assert "is supported: all 10 conditions hold" in rarely.evidence
    assert often.sentence == "Where they often do, neither helps in general."
    assert "No real graph has all its runs yet" in often.evidence
    assert "changes accuracy by less than 1 point" in temperature.sentence


def test_a_gate_with_a_gain_of_its_own_is_not_called_a_path() -> None:
    findings = find(PLAN, rows_of(independent_gate), [])
    claim = own_path_claim(findings)
    assert not claim.is_supported
    assert claim.conditions["the gate gains over plain", "gat"]
    assert not claim.conditions["the gate adds nothing to the residual", "gat"]
    assert temperature_claim(findings, "temperature", "plain").is_supported
    assert not temperature_claim(
        findings, "fixed_norm_temperature", "fixed_norm"
    ).is_supported
    rarely, _, temperature = answer(findings)
    assert "a gate on top of it adds to it" in rarely.sentence
    assert temperature.sentence == "A temperature helps."
    assert "| **yes**: +6" in use_section(findings)


def test_a_small_gain_is_better_but_below_the_bound() -> None:
    findings = find(PLAN, rows_of(lambda arm, _: 0.4 * (arm == "residual")), [])
    test = findings.test(ALL, "gat", "residual")
    assert test is not None
    assert test.is_better
    assert test.verdict == "better, but below the bound"


def test_a_failed_run_loses_its_pair_and_a_graph_without_all_rows_is_left_out() -> None:
    rows = rows_of(own_path)
    (lost,) = (
        r for r in rows if r.key == Key("homophilic", "gat", "plain", -1, 0, 2000)
    )
    failed = Row(lost.key, None, None, None, 7, (), (), "cpu", 0.1)
    findings = find(PLAN, [failed if row is lost else row for row in rows], [])
    assert findings.failed == 1
    (graph,) = (g for g in findings.generated["gat"] if g.graph == "homophilic")
    assert within(graph, [RESIDUAL])[0].pairs == 4
    fewer = find(PLAN, [row for row in rows if row is not lost], [])
    assert len(fewer.generated["gat"]) == 13


def test_the_rule_is_judged_on_the_graphs_where_it_differs() -> None:
    def graph(name: str, plain: float, residual: float) -> Measured:
        scores: dict[str, Scores] = {"plain": {0: plain}, "residual": {0: residual}}
        return Measured(name, name, scores)

    # cora is homophilic, so the rule takes plain; on actor it takes the residual.
    graphs = [graph("cora", 82.0, 80.0), graph("actor", 30.0, 36.0)]
    found = rule_test(PLAN, graphs)
    assert found is not None
    assert found.mean == pytest.approx(1.0)
    assert not found.is_supported
    homophilic = [g.name for g in PLAN.real.graphs if g.adjusted_homophily > 0.33]
    better = rule_test(PLAN, [graph(name, 82.0, 80.0) for name in homophilic])
    assert better is not None
    assert better.is_supported
    assert rule_test(PLAN, []) is None


def test_gains_that_rise_together_have_a_correlation_of_one() -> None:
    graphs = [
        Measured(
            "g", "g", {"plain": {0: 50.0}, "residual": {0: r}, "post_gate": {0: p}}
        )
        for r, p in ((60.0, 52.0), (50.0, 50.0), (40.0, 48.0))
    ]
    assert gains_together(graphs) == pytest.approx(1.0)
    assert gains_together(graphs[:2]) is None


def test_graphs_of_one_family_count_once() -> None:
    def graph(name: str, family: str, gain: float) -> Measured:
        scores = {arm: {0: 50.0, 1: 51.0} for arm in PLAN.arms}
        scores["residual"] = {0: 50.0 + gain, 1: 51.0 + gain}
        return Measured(name, family, {a: dict(s) for a, s in scores.items()})

    graphs = [graph("a", "f", 1.0), graph("b", "f", 3.0), graph("c", "g", 8.0)]
    tests = {graph.graph: within(graph, PLAN.contrasts) for graph in graphs}
    found = across(PLAN, graphs, tests)[0]
    assert found.contrast.name == "residual - plain"
    assert (found.graphs, found.tested) == (2, 3)
    assert found.mean == pytest.approx(5.0)
    table = ranks(PLAN, graphs)
    assert table is not None
    assert table.datasets == ("f", "g")
    assert table.average["residual"] == 1.0


def test_the_regression_finds_the_factor_that_a_gain_depends_on() -> None:
    def gain(arm: str, graph: GeneratedGraph) -> float:
        return 4.0 * np.log2(graph.degree / 8) * (arm == "residual")

    graphs = measured(FULL, rows_of(gain, FULL), "gat", len(FULL.generated.seeds))
    assert len(graphs) == 40
    found = regression(FULL, graphs, grid(FULL.generated), RESIDUAL)
    assert found["degree, doubled"][0].value == pytest.approx(4.0, abs=0.2)
    assert found["degree, doubled"][1] < 1e-6
    assert all(p > 0.01 for name, (_, p) in found.items() if "degree" not in name)
    text = regression_section(find(FULL, rows_of(gain, FULL), []))
    assert "With both backbones the residual's gain rises with degree" in text
    assert "the temperature's gain is not shown to depend on any of them" in text


def test_the_page_says_which_arms_the_ranks_separate() -> None:
    (generated,) = rank_sections(find(PLAN, rows_of(independent_gate), []))
    # With 14 graphs ranks must be 4.03 apart; residual is fifth, plain among the last.
    first = next(line for line in generated.split("\n") if line.startswith("- gat:"))
    assert " below post_gate_residual, " in first
    assert "must be 4.03 or more apart" in generated
    assert "it does not separate residual from plain and post_gate from" in generated


def test_the_page_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "when").mkdir()
    plan = yaml.safe_dump(PLAN.model_dump(mode="json"))
    (tmp_path / "when" / "plan.yaml").write_text(plan)
    report = reproduce_when(tmp_path, tmp_path / "docs")
    text = report.page.read_text()
    assert "No graph has all its runs yet" in text
    assert "18 of 18 real graphs" in " ".join(text.split())
    write_rows(tmp_path / CSV_OF_STAGE["generated"], rows_of(own_path))
    text = reproduce_when(tmp_path, tmp_path / "docs").page.read_text()
    assert "all 10 conditions hold" in " ".join(text.split())
    assert "figures/when-gains.svg" in text
    assert (tmp_path / "docs" / "figures" / "when-gains.svg").exists()
    assert "14 of 14 generated graphs" in " ".join(text.split())
