"""The committed plan, and what it asks for."""

from dataclasses import asdict, astuple
from pathlib import Path

import pytest

from tempergat.base import UserError
from tempergat.study.when.graphs import generate, grid
from tempergat.study.when.plan import load_plan
from tempergat.study.when.runs.groups import (
    generated_groups,
    missing_groups,
    real_groups,
    search_groups,
)
from tempergat.study.when.runs.parts import counts
from tempergat.study.when.runs.rows import Key, Row
from tempergat.study.when.runs.search import chosen_settings

ROOT = Path(__file__).resolve().parents[3]
PLAN = load_plan(ROOT / "results")
FACTORS = ("homophily", "degree", "mu", "sigma", "rho", "label_rate")


def test_the_plan_asks_for_its_number_of_runs(tmp_path: Path) -> None:
    assert len(grid(PLAN.generated)) == 40
    assert counts(PLAN, tmp_path, None) == (22 * 40 * 10, 0)
    assert counts(PLAN, tmp_path, PLAN.real.graphs[0]) == (22 * (24 + 10), 0)
    groups = generated_groups(PLAN)
    assert len({key for group in groups for key in group.runs}) == 8800


def test_each_generated_graph_differs_from_its_centre_in_one_factor() -> None:
    points = grid(PLAN.generated)
    for point in points.values():
        if point.varied in ("centre", "homophily"):
            continue
        centre = asdict(points[point.centre])
        changed = [f for f in FACTORS if asdict(point)[f] != centre[f]]
        assert changed == [point.varied]
    assert len({point.seed for point in points.values()}) == 40


def test_a_generated_graph_has_the_homophily_and_degree_of_its_point() -> None:
    point = grid(PLAN.generated)["heterophilic, degree 24"]
    data = generate(PLAN.generated, point).data
    source, target = data.edge_index
    same = (data.y[source] == data.y[target]).float().mean()
    assert float(same) == pytest.approx(0.1, abs=0.01)
    assert data.num_edges / data.num_nodes == pytest.approx(24, abs=0.5)
    assert int(data.train_mask.sum()) == 80


def test_a_search_has_a_group_for_each_dropout_and_the_report_one() -> None:
    graph = PLAN.real.graphs[0]
    changes = PLAN.real.search.changes()
    for splits in (1, 10):
        groups = search_groups(PLAN, graph, splits)
        assert len(groups) == 22 * 3
        assert len({key for group in groups for key in group.runs}) == 22 * 24
        for group in groups:
            found = {changes[key.setting]["feature_dropout"] for key in group.runs}
            assert len(found) == 1
            assert len({key[:3] for key in map(astuple, group.runs)}) == 1
    chosen = {(graph.name, "gat", "plain"): 3}
    (group,) = real_groups(PLAN, graph, 1, chosen)
    assert {key.setting for key in group.runs} == {3}
    assert tuple(key.seed for key in group.runs) == PLAN.real.seeds


def test_seeds_share_a_single_split_and_have_one_each_of_several() -> None:
    graph = PLAN.real.graphs[0]
    chosen = {(graph.name, "gat", "plain"): 3}
    (group,) = real_groups(PLAN, graph, 1, chosen)
    assert [key.split for key in group.runs] == [0] * 10
    (group,) = real_groups(PLAN, graph, 10, chosen)
    assert [key.split for key in group.runs] == list(range(10))
    on_splits = search_groups(PLAN, graph, splits=10)
    assert {key.split for group in on_splits for key in group.runs} == {0, 1}


def test_runs_with_a_row_are_not_trained_again() -> None:
    first, second = search_groups(PLAN, PLAN.real.graphs[0], 10)[:2]
    rows = [
        Row(key, 1.0, 1.0, 1, 1, (), (), "cpu", 0.1)
        for key in (*first.runs, second.runs[0])
    ]
    (left,) = missing_groups([first, second], rows)
    assert left.runs == second.runs[1:]


def test_a_search_chooses_by_validation_and_waits_until_it_is_complete() -> None:
    def row(setting: int, seed: int, val: float | None) -> Row:
        key = Key("cora", "gat", "plain", setting, 0, seed)
        # Test scores would choose the first setting.
        return Row(key, val, 99.0 - setting, 1, 10, (), (), "cpu", 0.1)

    seeds = PLAN.real.search.seeds
    rows = [row(s, seed, 50.0 + (s == 7)) for s in range(12) for seed in seeds]
    assert chosen_settings(PLAN, rows) == {("cora", "gat", "plain"): 7}
    assert chosen_settings(PLAN, rows[:-1]) == {}
    failed = [
        row(7, seeds[0], None) if r == row(7, seeds[0], 51.0) else r for r in rows
    ]
    assert chosen_settings(PLAN, failed) == {("cora", "gat", "plain"): 0}


def test_a_plan_with_an_unknown_arm_is_refused(tmp_path: Path) -> None:
    text = (ROOT / "results" / "when" / "plan.yaml").read_text()
    (tmp_path / "when").mkdir()
    (tmp_path / "when" / "plan.yaml").write_text(
        text.replace("  - residual\n", "  - resdual\n")
    )
    with pytest.raises(UserError, match="unknown arm 'resdual'"):
        load_plan(tmp_path)
